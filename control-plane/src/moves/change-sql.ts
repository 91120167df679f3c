// The statements that apply changes of rows to the copy. Each must change exactly the rows that it is made for. Pure.
import { identifier } from '../platform/identifiers.ts'
import type { Cell, Message, Relation } from './pgoutput.ts'

interface Statement {
  text: string
  values: (string | null)[]
}

type RowChange = Extract<Message, { type: 'update' | 'delete' }>

/** Returns the statement that inserts rows, of which each has a cell for each column. There is at least one row. */
export function insertSql(schema: string, { name, columns }: Relation, rows: readonly (readonly Cell[])[]): Statement {
  const table = `${identifier(schema)}.${identifier(name)}`
  if (columns.length === 0)
    return { text: `insert into ${table} select from pg_catalog.generate_series(1, ${rows.length})`, values: [] }
  const values: (string | null)[] = []
  const tuples = rows.map((row) => `(${columns.map((_, at) => `$${values.push(row[at] ?? null)}`).join(', ')})`)
  const names = columns.map((column) => identifier(column.name)).join(', ')
  return { text: `insert into ${table} (${names}) overriding system value values ${tuples.join(', ')}`, values }
}

/** Returns the statement for a change of a row. */
export function changeSql(schema: string, relation: Relation, change: RowChange): Statement {
  const table = `${identifier(schema)}.${identifier(relation.name)}`
  const values: (string | null)[] = []
  const value = (cell: string | null) => `$${values.push(cell)}`
  const present = (row: readonly Cell[]) =>
    relation.columns.flatMap(({ name }, at) => {
      const cell = row[at]
      return cell === undefined ? [] : [[identifier(name), cell] as const]
    })
  const where = (row: readonly Cell[]) => {
    const keys = relation.columns.flatMap(({ name, isKey }, at) =>
      isKey ? [[identifier(name), row[at] ?? null] as const] : [],
    )
    if (!relation.isFull) return keys.map(([name, cell]) => `${name} = ${value(cell)}`).join(' and ')
    // Types without an operator `=` are compared as text. One of several equal rows is chosen.
    const same = keys.map(([name, cell]) =>
      cell === null
        ? `pg_catalog.num_nulls(${name}) = 1`
        : `pg_catalog.num_nulls(${name}) = 0 and pg_catalog.format('%s', ${name}) = ${value(cell)}::pg_catalog.text`,
    )
    return `ctid = (select ctid from only ${table} where ${same.length === 0 ? 'true' : same.join(' and ')} limit 1)`
  }
  if (change.type === 'delete') return { text: `delete from only ${table} where ${where(change.old)}`, values }
  const { old = change.row, row } = change
  const settable = row.map((cell, at) => (relation.columns[at]?.isAlways === true ? undefined : cell))
  const set = present(settable).map(([name, cell]) => `${name} = ${value(cell)}`)
  const named = where(old)
  // The statement changes no row if the update has given a new value to such a column, which no statement can repeat.
  const same = relation.columns.flatMap(({ name, isAlways = false }, at) => {
    const cell = row[at]
    return isAlways && cell != null ? [` and ${identifier(name)} = ${value(cell)}`] : []
  })
  const found = named + same.join('')
  return {
    text:
      set.length === 0
        ? `select 1 from only ${table} where ${found}`
        : `update only ${table} set ${set.join(', ')} where ${found}`,
    values,
  }
}
