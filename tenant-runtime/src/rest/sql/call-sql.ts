// Calls of functions as SQL. Pure.
import type { Statement } from '../../database/statement.ts'
import { mayChange } from '../plan/plan-computed.ts'
import type { CallPlan } from '../plan/plan.ts'
import type { Argument } from '../registry/catalog.ts'
import type { Format } from '../request/read-accept.ts'
import type { Preferences } from '../request/read-preferences.ts'
import { rejections } from './change-sql.ts'
import { bodySql, csvSql, mediaSql, rowsSql, type Count } from './response-sql.ts'
import { retainedRows } from './retained-rows.ts'
import { identifier } from './names.ts'
import { Parameters } from './parameters.ts'
import { freeName, matchingSql } from './select-sql.ts'

/**
 * Arguments: `json` is an object with an argument under each name, or an array that begins with it; `whole` is the only
 * argument; `texts` are those of a query string.
 */
export type Given =
  | { kind: 'json'; body: string; isArray: boolean }
  | { kind: 'whole'; body: string | Buffer }
  | { kind: 'texts'; values: ReadonlyMap<string, string> }

/**
 * Returns a statement with the columns `body`, `n`, and with a count `total`. A function's declaration that it changes
 * nothing is trusted.
 */
export function callStatement(
  plan: CallPlan,
  given: Given,
  format: Format,
  { count, maxAffected }: Pick<Preferences, 'count' | 'maxAffected'>,
): Statement {
  const isForeign = !plan.routine.isReading || (plan.read !== undefined && mayChange(plan.read))
  const { text, values } = calling(plan, given, format, count)
  if (maxAffected === undefined) return { text, values, isForeign }
  const max = `$${values.length + 1}::bigint`
  return {
    text: `select a.*, case when a.n > ${max} then refuse_change('${rejections.maxChanged}', a.n) end as guard from (${text}) a`,
    values: [...values, maxAffected],
    isForeign,
  }
}

/** Returns a call of a function without arguments. Its result is not used. */
export function preRequestStatement(name: string): Statement {
  // Postgres always computes the rows of a function in FROM. It calls an immutable one when it plans the statement, which is
  // therefore planned each time.
  return { text: `select count(*) from ${identifier(name)}() called`, values: [], prepare: 'once', isForeign: true }
}

function calling(
  { routine, given: names, read, page }: CallPlan,
  given: Given,
  format: Format,
  count: Count,
): Statement {
  const parameters = new Parameters()
  const call = `${identifier(routine.routine)}(${argumentsSql(routine.arguments, given, names, parameters)})`
  const { values } = parameters
  const { kind, isSet } = routine.returns
  if (read !== undefined) {
    // A call with a count still runs once.
    const called = count === undefined ? undefined : freeName('called', read)
    const retained = retainedRows(read, 'c')
    const source = called === undefined ? { from: call } : retained.source(called)
    const rows = rowsSql(read, source, parameters, format)
    const total =
      called === undefined ? '' : `, (select count(*) from (${matchingSql(read, source, parameters)}) m) as total`
    const body = bodySql(format)
    const isObject = !isSet && format.kind === 'json' && !format.singular
    const made =
      called === undefined
        ? ''
        : `with ${called} as materialized (select ${['c.*', ...retained.columns].join(', ')} from ${call} c) `
    const result = isObject ? `coalesce(((${body})::json->0)::text, 'null')` : body
    return {
      text: `${made}select ${result} as body, count(*) as n${total} from (${rows}) r`,
      values,
    }
  }
  if (kind === 'nothing') return { text: `select '' as body, 0 as n from (select ${call}) r`, values }
  if (!isSet) {
    const total = count === undefined ? '' : ', 1 as total'
    const body =
      format.kind === 'media'
        ? mediaSql(format.handler, 'r.v')
        : format.kind === 'csv'
          ? csvSql('row(r.v)')
          : "coalesce(to_json(r.v)::text, 'null')"
    return {
      text: `select ${body} as body, 1 as n${total} from (select ${call} as v) r`,
      values,
    }
  }
  const list =
    format.kind === 'csv'
      ? `coalesce(string_agg(${csvSql('row(r.v)')}, E'\\n'), '')`
      : "coalesce(json_agg(r.v), '[]')::text"
  const paged = `select v from called limit ${parameters.add(page.limit)} offset ${parameters.add(page.offset)}`
  const total = count === undefined ? '' : ', (select count(*) from called) as total'
  return {
    text:
      `with called as materialized (select ${call} as v)` +
      ` select ${list} as body, count(*) as n${total} from (${paged}) r`,
    values,
  }
}

function argumentsSql(all: readonly Argument[], from: Given, names: readonly string[], parameters: Parameters): string {
  if (from.kind === 'whole') return `${parameters.add(from.body)}::${all[0]?.type ?? 'json'}`
  const given = all.filter(({ name }) => names.includes(name))
  const object =
    from.kind === 'json' && given.length > 0 ? `(${parameters.add(from.body)}::json${from.isArray ? '->0' : ''})` : ''
  const list = given.map(({ name, type }) => `${identifier(name)} ${type}`).join(', ')
  const values = given.map(({ name, type, isVariadic }) => {
    const value =
      from.kind === 'texts'
        ? `${parameters.add(from.values.get(name) ?? null)}::${type}`
        : `(select x.${identifier(name)} from json_to_record(${object}) as x(${list}))`
    return `${isVariadic ? 'variadic ' : ''}${identifier(name)} := ${value}`
  })
  // Postgres requires a variadic argument, which may be empty.
  const none = all.filter(({ name, isVariadic, isOptional }) => isVariadic && !isOptional && !names.includes(name))
  return [...values, ...none.map(({ name, type }) => `variadic ${identifier(name)} := '{}'::${type}`)].join(', ')
}
