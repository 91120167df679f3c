// Calls of functions as SQL. Pure.
import type { Statement } from '../../database/statement.ts'
import type { CallPlan } from '../plan/plan.ts'
import type { Argument } from '../registry/catalog.ts'
import type { Format } from '../request/read-accept.ts'
import { bodySql, type Count } from './answer-sql.ts'
import { identifier } from './names.ts'
import { Parameters } from './parameters.ts'
import { matchingSql, selectSql } from './select-sql.ts'

/** `json`: an object with an argument under each name. `whole`: the only argument. `texts`: as a query string has them. */
export type Given = { kind: 'json' | 'whole'; body: string } | { kind: 'texts'; values: ReadonlyMap<string, string> }

/** Columns: `body`, `n`, and with a count `total`. */
export function callStatement({ routine, given: names, read }: CallPlan, given: Given, format: Format, count: Count): Statement {
  const parameters = new Parameters()
  const call = `${identifier(routine.name)}(${argumentsSql(routine.arguments.filter(({ name }) => given.kind === 'whole' || names.includes(name)), given, parameters)})`
  const { values } = parameters
  if (read !== undefined) {
    const source = { from: call }
    const rows = selectSql(read, source, parameters)
    const total = count === undefined ? '' : `, (select count(*) from (${matchingSql(read, source, parameters)}) m) as total`
    const body = bodySql(read, format)
    const isObject = !routine.returns.isSet && format.kind === 'json' && !format.singular
    return { text: `select ${isObject ? `coalesce(((${body})::json->0)::text, 'null')` : body} as body, count(*) as n${total} from (${rows}) r`, values }
  }
  const { kind, isSet } = routine.returns
  if (kind === 'nothing') return { text: `select '' as body, 0 as n from (select ${call}) r`, values }
  if (!isSet) return { text: `select coalesce(to_json(r.v)::text, 'null') as body, 1 as n from (select ${call} as v) r`, values }
  return { text: `select coalesce(json_agg(r.v), '[]')::text as body, count(*) as n from (select * from ${call} as c(v)) r`, values }
}

function argumentsSql(given: readonly Argument[], from: Given, parameters: Parameters): string {
  if (from.kind === 'whole') return `${parameters.add(from.body)}::${given[0]?.type ?? 'json'}`
  const object = from.kind === 'json' && given.length > 0 ? parameters.add(from.body) : ''
  const list = given.map(({ name, type }) => `${identifier(name)} ${type}`).join(', ')
  return given
    .map(({ name, type, isVariadic }) => {
      const value = from.kind === 'texts' ? `${parameters.add(from.values.get(name) ?? null)}::${type}` : `(select x.${identifier(name)} from json_to_record(${object}::json) as x(${list}))`
      return `${isVariadic ? 'variadic ' : ''}${identifier(name)} := ${value}`
    })
    .join(', ')
}
