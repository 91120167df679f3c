// Statements whose one row is a response: `body` is its text, made by Postgres; `n` the number of its rows. Pure.
import type { Statement } from '../../database/statement.ts'
import { mayChange } from '../plan/plan-computed.ts'
import { columnsOf, isAggregated, type ReadPlan } from '../plan/plan.ts'
import type { MediaHandler } from '../registry/catalog.ts'
import type { Format } from '../request/read-accept.ts'
import { identifier } from './names.ts'
import { Parameters } from './parameters.ts'
import { matchingSql, selectSql, sourceOf, type Naming, type Source } from './select-sql.ts'

export type Count = 'exact' | 'planned' | 'estimated' | undefined

/** The number of rows up to which a list is counted exactly. For longer lists the planner's estimate applies. */
const maxCountedRows = 1_000

/** Returns the statement of a plan. Functions of the tenant may do anything, unless they are declared to change nothing. */
export function statementOf(plan: ReadPlan | undefined, text: string, { values }: Parameters): Statement {
  return plan !== undefined && mayChange(plan) ? { text, values, isForeign: true } : { text, values }
}

/** Returns the statement of a response without a body: `n` and `total` as in `readStatement`. */
export function headStatement(plan: ReadPlan, count: Count): Statement {
  const parameters = new Parameters()
  const source = sourceOf(plan.relation)
  const rows = selectSql(isAggregated(plan) ? plan : { ...plan, fields: [] }, source, parameters)
  const total = totalSql(plan, source, count, parameters)
  return statementOf(plan, `select '' as body, count(*) as n${total} from (${rows}) r`, parameters)
}

/** Returns a statement with the columns `body`, `n`, and with an exact count `total`: the number of all matching rows. */
export function readStatement(plan: ReadPlan, format: Format, count: Count): Statement {
  const parameters = new Parameters()
  const source = sourceOf(plan.relation)
  const rows = rowsSql(plan, source, parameters, format)
  const total = totalSql(plan, source, count, parameters)
  return statementOf(plan, `select ${bodySql(format)} as body, count(*) as n${total} from (${rows}) r`, parameters)
}

/** Returns the statement of a plan that finds at most one row. When it finds none, the statement returns no row. */
export function recordStatement(plan: ReadPlan): Statement {
  const parameters = new Parameters()
  const rows = selectSql(plan, sourceOf(plan.relation), parameters)
  return statementOf(plan, `select ${oneRowSql('r')} as body, 1::bigint as n from (${rows}) r`, parameters)
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
  const row = format.kind === 'csv' ? csvSql('r') : `${json}::text`
  return statementOf(plan, `select ${row} as row from (${rows}) r`, parameters)
}

/** Returns the rows of a plan, as `bodySql` takes them. */
export function rowsSql(plan: ReadPlan, source: Source, parameters: Parameters, format: Format): string {
  if (format.kind !== 'media' || !format.handler.isOfRows) return selectSql(plan, source, parameters, namingFor(format))
  const whole = (table: string) => [`${table}::${identifier(plan.relation.table)} as whole`]
  return selectSql({ ...plan, fields: [], embeddings: [] }, source, parameters, 'names', whole)
}

/** Returns the text of a media type: of bytes in Base64. */
export function mediaSql({ base }: MediaHandler, value: string): string {
  return `coalesce(${base === 'bytea' ? `encode(${value}::bytea, 'base64')` : `${value}::text`}, '')`
}

/**
 * Returns the body of the rows of a table `r`, whose columns are named by `namingFor`.
 * @param row SQL of a row's JSON
 * @param csvRow SQL of a row for CSV
 */
export function bodySql(format: Format, row = 'r.*', csvRow = 'r'): string {
  if (format.kind === 'media') {
    const { aggregate = '', isOfRows } = format.handler
    return mediaSql(format.handler, `${identifier(aggregate)}(${isOfRows ? 'r.whole' : 'r'})`)
  }
  if (format.kind === 'csv') return `coalesce(string_agg(${csvSql(csvRow)}, E'\\n'), '')`
  const array = `coalesce(json_agg(${row}), '[]')`
  return format.kind === 'json' && format.stripped ? `json_strip_nulls(${array})::text` : `${array}::text`
}

/** Returns a line of CSV: Postgres' text of a row, without its parentheses. A null is empty, an empty text is `""`. */
export function csvSql(row: string): string {
  return `substr(${row}::text, 2, length(${row}::text) - 2)`
}

/** Returns the first line of CSV, which names the columns of the rows. Without rows it is empty. */
export function csvHeader({ fields }: ReadPlan, rows: number): string {
  return rows === 0
    ? ''
    : columnsOf(fields)
        .map(({ name }) => name)
        .join(',')
}
