// Plans as SQL. Postgres makes the JSON; every value is a parameter, every name was resolved by the plan. Pure.
import type { Statement, Value } from '../../database/statement.ts'
import type { Column } from '../registry/collection.ts'
import type { Plan, PlannedFilter } from '../plan/plan.ts'
import { identifier } from './names.ts'

/** Columns of each result: `body` is JSON text, `n` its number of records, `total` all that match (or null). */
export function readStatement(plan: Plan, count: boolean): Statement {
  const values: Value[] = []
  const table = identifier(plan.collection.name)
  const where = whereSql(plan.filters, values)
  const total = count ? `(select count(*) from ${table}${where})` : 'null::bigint'
  values.push(plan.limit, plan.offset)
  const page = `select ${columnList(plan.columns)} from ${table}${where}${orderSql(plan)} limit $${values.length - 1}::bigint offset $${values.length}::bigint`
  return { text: `select coalesce(json_agg(r), '[]')::text as body, count(*) as n, ${total} as total from (${page}) r`, values }
}

/** `records` are objects whose keys are among `columns`; missing ones take the column's default. */
export function insertStatement(plan: Plan, columns: readonly Column[], records: readonly object[]): Statement {
  const table = identifier(plan.collection.name)
  const names = columnList(columns)
  const key = identifier(plan.collection.primary)
  const source =
    records.length === 0 ? `insert into ${table} (${key}) select ${key} from ${table} where false`
    : columns.length === 0 ? `insert into ${table} (${key}) values ${records.map(() => '(default)').join(', ')}`
    : `insert into ${table} (${names}) select ${names} from json_populate_recordset(null::${table}, $1::json)`
  return changeStatement(plan, source, columns.length === 0 ? [] : [JSON.stringify(records)])
}

export function updateStatement(plan: Plan, columns: readonly Column[], record: object): Statement {
  const table = identifier(plan.collection.name)
  const values: Value[] = [JSON.stringify(record)]
  const set = columns.map(({ name }) => `${identifier(name)} = "new record".${identifier(name)}`).join(', ')
  const where = whereSql(plan.filters, values, table)
  return changeStatement(plan, `update ${table} set ${set} from json_populate_record(null::${table}, $1::json) as "new record"${where}`, values)
}

export function deleteStatement(plan: Plan): Statement {
  const values: Value[] = []
  const table = identifier(plan.collection.name)
  return changeStatement(plan, `delete from ${table}${whereSql(plan.filters, values, table)}`, values)
}

function changeStatement(plan: Plan, change: string, values: Value[]): Statement {
  const table = identifier(plan.collection.name)
  const returned = plan.columns.map(({ name }) => `${table}.${identifier(name)}`).join(', ')
  return {
    text: `with changed as (${change} returning ${returned}) select coalesce(json_agg(changed), '[]')::text as body, count(*) as n, count(*) as total from changed`,
    values,
  }
}

function columnList(columns: readonly Column[]): string {
  return columns.map(({ name }) => identifier(name)).join(', ')
}

function whereSql(filters: readonly PlannedFilter[], values: Value[], table?: string): string {
  if (filters.length === 0) return ''
  return ` where ${filters.map((filter) => filterSql(filter, values, table)).join(' and ')}`
}

const comparisons = { eq: '=', neq: '<>', gt: '>', gte: '>=', lt: '<', lte: '<=' } as const

function filterSql({ column, operator, negated, values: given }: PlannedFilter, values: Value[], table?: string): string {
  const name = table === undefined ? identifier(column.name) : `${table}.${identifier(column.name)}`
  const parameter = (text: string, type: string) => `$${values.push(text)}::${type}`
  const condition = () => {
    const [first = ''] = given
    switch (operator) {
      case 'in':
        return given.length === 0 ? 'false' : `${name} in (${given.map((text) => parameter(text, column.sqlType)).join(', ')})`
      case 'is':
        return `${name} is ${isWord(first)}`
      case 'like':
      case 'ilike':
        return `${name}::text ${operator} ${parameter(first.replaceAll('*', '%'), 'text')}`
      default:
        return `${name} ${comparisons[operator]} ${parameter(first, column.sqlType)}`
    }
  }
  return negated ? `not (${condition()})` : condition()
}

/** The request's reader lets no other word pass. */
function isWord(text: string): string {
  switch (text.toLowerCase()) {
    case 'true':
      return 'true'
    case 'false':
      return 'false'
    case 'unknown':
      return 'unknown'
    case 'not_null':
      return 'not null'
    default:
      return 'null'
  }
}

function orderSql({ order }: Plan): string {
  if (order.length === 0) return ''
  const parts = order.map(({ column, direction, nulls }) => `${identifier(column.name)} ${direction}${nulls === undefined ? '' : ` nulls ${nulls}`}`)
  return ` order by ${parts.join(', ')}`
}
