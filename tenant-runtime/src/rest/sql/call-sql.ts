// Calls of functions as SQL. Pure.
import type { Statement } from '../../database/statement.ts'
import type { CallPlan } from '../plan/plan.ts'
import type { Argument } from '../registry/catalog.ts'
import type { Format } from '../request/read-accept.ts'
import { bodySql, namingFor, type Count } from './response-sql.ts'
import { identifier } from './names.ts'
import { Parameters } from './parameters.ts'
import { freeName, matchingSql, selectSql } from './select-sql.ts'

/**
 * Arguments: `json` is an object with an argument under each name, `whole` is the only argument, `texts` are those of a
 * query string.
 */
export type Given = { kind: 'json' | 'whole'; body: string } | { kind: 'texts'; values: ReadonlyMap<string, string> }

/**
 * Returns a statement with the columns `body`, `n`, and with a count `total`. A function's declaration that it changes
 * nothing is trusted.
 */
export function callStatement(plan: CallPlan, given: Given, format: Format, count: Count): Statement {
  return { ...calling(plan, given, format, count), isForeign: !plan.routine.isReading }
}

function calling(
  { routine, given: names, read, page }: CallPlan,
  given: Given,
  format: Format,
  count: Count,
): Statement {
  const parameters = new Parameters()
  const call = `${identifier(routine.name)}(${argumentsSql(routine.arguments, given, names, parameters)})`
  const { values } = parameters
  const { kind, isSet } = routine.returns
  if (read !== undefined) {
    // A call with a count still runs once.
    const called = count === undefined ? undefined : freeName('called', read)
    const source = { from: called ?? call }
    const rows = selectSql(read, source, parameters, namingFor(format))
    const total =
      called === undefined ? '' : `, (select count(*) from (${matchingSql(read, source, parameters)}) m) as total`
    const body = bodySql(read, format)
    const isObject = !isSet && format.kind === 'json' && !format.singular
    const made = called === undefined ? '' : `with ${called} as materialized (select * from ${call} c) `
    const result = isObject ? `coalesce(((${body})::json->0)::text, 'null')` : body
    return {
      text: `${made}select ${result} as body, count(*) as n${total} from (${rows}) r`,
      values,
    }
  }
  if (kind === 'nothing') return { text: `select '' as body, 0 as n from (select ${call}) r`, values }
  if (!isSet)
    return { text: `select coalesce(to_json(r.v)::text, 'null') as body, 1 as n from (select ${call} as v) r`, values }
  const paged = `select v from called limit ${parameters.add(page.limit)} offset ${parameters.add(page.offset)}`
  const total = count === undefined ? '' : ', (select count(*) from called) as total'
  return {
    text:
      `with called as materialized (select ${call} as v)` +
      ` select coalesce(json_agg(r.v), '[]')::text as body, count(*) as n${total} from (${paged}) r`,
    values,
  }
}

function argumentsSql(all: readonly Argument[], from: Given, names: readonly string[], parameters: Parameters): string {
  if (from.kind === 'whole') return `${parameters.add(from.body)}::${all[0]?.type ?? 'json'}`
  const given = all.filter(({ name }) => names.includes(name))
  const object = from.kind === 'json' && given.length > 0 ? parameters.add(from.body) : ''
  const list = given.map(({ name, type }) => `${identifier(name)} ${type}`).join(', ')
  const values = given.map(({ name, type, isVariadic }) => {
    const value =
      from.kind === 'texts'
        ? `${parameters.add(from.values.get(name) ?? null)}::${type}`
        : `(select x.${identifier(name)} from json_to_record(${object}::json) as x(${list}))`
    return `${isVariadic ? 'variadic ' : ''}${identifier(name)} := ${value}`
  })
  // Postgres requires a variadic argument, which may be empty.
  const none = all.filter(({ name, isVariadic, isOptional }) => isVariadic && !isOptional && !names.includes(name))
  return [...values, ...none.map(({ name, type }) => `variadic ${identifier(name)} := '{}'::${type}`)].join(', ')
}
