// Statements whose one row is a response: `body` is its text, made by Postgres; `n` the number of its rows. Pure.
import type { Statement } from '../../database/statement.ts'
import { columnsOf, isAggregated, type ReadPlan } from '../plan/plan.ts'
import type { Format } from '../request/read-accept.ts'
import { Parameters } from './parameters.ts'
import { matchingSql, selectSql, sourceOf, type Naming, type Source } from './select-sql.ts'

export type Count = 'exact' | 'planned' | 'estimated' | undefined

/** The number of rows up to which a list is counted exactly. For longer lists the planner's estimate applies. */
const maxCountedRows = 1_000

/** Returns the statement of a response without a body: `n` and `total` as in `readStatement`. */
export function headStatement(plan: ReadPlan, count: Count): Statement {
  const parameters = new Parameters()
  const source = sourceOf(plan.relation)
  const rows = selectSql(isAggregated(plan) ? plan : { ...plan, fields: [] }, source, parameters)
  return {
    text: `select '' as body, count(*) as n${totalSql(plan, source, count, parameters)} from (${rows}) r`,
    values: parameters.values,
  }
}

/** Returns a statement with the columns `body`, `n`, and with an exact count `total`: the number of all matching rows. */
export function readStatement(plan: ReadPlan, format: Format, count: Count): Statement {
  const parameters = new Parameters()
  const source = sourceOf(plan.relation)
  const rows = selectSql(plan, source, parameters, namingFor(format))
  const total = totalSql(plan, source, count, parameters)
  return {
    text: `select ${bodySql(plan, format)} as body, count(*) as n${total} from (${rows}) r`,
    values: parameters.values,
  }
}

/** Returns the statement of a plan that finds at most one row. When it finds none, the statement returns no row. */
export function recordStatement(plan: ReadPlan): Statement {
  const parameters = new Parameters()
  const rows = selectSql(plan, sourceOf(plan.relation), parameters)
  return { text: `select ${oneRowSql('r')} as body, 1::bigint as n from (${rows}) r`, values: parameters.values }
}

/** Returns SQL of a JSON array of the one row with this name. */
export function oneRowSql(table: string): string {
  return `'[' || row_to_json(${table}.*)::text || ']'`
}

/** Returns `, (…) as total`, or nothing. */
export function totalSql(plan: ReadPlan, source: Source, count: Count, parameters: Parameters): string {
  if (count === undefined || count === 'planned') return ''
  const max = count === 'estimated' ? ` limit ${maxCountedRows + 1}` : ''
  return `, (select count(*) from (${matchingSql(plan, source, parameters)}${max}) m) as total`
}

/** Whether the `total` of an estimated count is exact. */
export function isCounted(total: number): boolean {
  return total <= maxCountedRows
}

/** Returns a statement whose result is the planner's estimate as JSON. */
export function explainStatement(plan: ReadPlan): Statement {
  const parameters = new Parameters()
  return {
    text: `explain (format json) ${matchingSql(plan, sourceOf(plan.relation), parameters)}`,
    values: parameters.values,
  }
}

/** JSON objects may have a key twice, as requested; CSV lines have positions. */
export function namingFor({ kind }: Format): Naming {
  return kind === 'csv' ? 'positions' : 'names'
}

/** Returns a statement with a row for each of the list's, with one column of text. */
export function rowStatement(plan: ReadPlan, format: Format): Statement {
  const parameters = new Parameters()
  const rows = selectSql(plan, sourceOf(plan.relation), parameters, namingFor(format))
  const json = format.kind === 'json' && format.stripped ? 'json_strip_nulls(row_to_json(r.*))' : 'row_to_json(r.*)'
  return {
    text: `select ${format.kind === 'csv' ? csvRowSql(plan) : `${json}::text`} as row from (${rows}) r`,
    values: parameters.values,
  }
}

/** Returns the body of the rows of a table `r`, whose columns are named by `namingFor`. `row` is SQL of a row's JSON. */
export function bodySql(plan: ReadPlan, format: Format, row = 'r.*'): string {
  if (format.kind === 'csv') return `coalesce(string_agg(${csvRowSql(plan)}, E'\\n'), '')`
  const array = `coalesce(json_agg(${row}), '[]')`
  return format.kind === 'json' && format.stripped ? `json_strip_nulls(${array})::text` : `${array}::text`
}

function csvRowSql({ fields }: ReadPlan): string {
  const texts = columnsOf(fields).map((_, n) => csvSql(`r.c${n}`))
  return texts.length === 0 ? "''" : texts.join(" || ',' || ")
}

/** Returns a field of RFC 4180: quoted when it must be, and when it is an empty string, which differs from null. */
function csvSql(column: string): string {
  const text = `${column}::text`
  return (
    `case when ${text} is null then '' when ${text} = '' or ${text} ~ '[",\\r\\n]'` +
    ` then '"' || replace(${text}, '"', '""') || '"' else ${text} end`
  )
}

/** Returns the first line of CSV. */
export function csvHeader(plan: ReadPlan): string {
  return columnsOf(plan.fields)
    .map(({ name }) => (/[",\r\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name))
    .join(',')
}
