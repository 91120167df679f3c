// Tables with a name, and pages of lists.
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import type { Paged } from '../api/types.ts'
import { useLoad, type Live, type Loaded } from '../api/use-load.ts'
import { Load } from './feedback.tsx'

/** One column of a table. */
export interface Column<Row> {
  title: string
  /** The content of the column's head; by default its title. */
  head?: ComponentChildren
  cell: (row: Row) => ComponentChildren
  /** Numbers are at the right side. */
  isNumber?: boolean
  /** Hidden on narrow screens, where the row's own screen has the value. */
  isMinor?: boolean
  /** Not broken into lines where there is room. */
  isWhole?: boolean
}

interface TableProps<Row> {
  label: string
  columns: Column<Row>[]
  rows: readonly Row[]
  rowKey: (row: Row) => string
}

/** A table. Wide ones scroll in their own frame, by keyboard too. */
export function Table<Row>({ label, columns, rows, rowKey }: TableProps<Row>) {
  const classOf = ({ title, isNumber, isMinor, isWhole }: Column<Row>) =>
    Object.entries({ number: isNumber, minor: isMinor, whole: isWhole, actions: title === 'Actions' })
      .flatMap(([name, applies]) => (applies === true ? [name] : []))
      .join(' ')
  return (
    <div class="table-frame" tabIndex={0} role="region" aria-label={label}>
      {/* The roles stay when narrow screens show rows as blocks. */}
      <table role="table">
        <thead role="rowgroup">
          <tr role="row">
            {/* Two columns may have the same title. */}
            {columns.map((column, at) => (
              <th key={at} role="columnheader" scope="col" class={classOf(column)}>
                {column.head ?? column.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {rows.map((row) => (
            <tr key={rowKey(row)} role="row">
              {columns.map((column, at) => (
                <td key={at} role="cell" data-title={column.title} class={classOf(column)}>
                  <div>{column.cell(row)}</div>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** Pages of a list: the loaded page, and where the list continues. */
export interface Pages<Body> {
  load: Loaded<Body>
  number: number
  next: (() => void) | undefined
  previous: (() => void) | undefined
}

/** Loads a list page by page. A change of `path` begins at its first page. */
export function usePages<Body extends Paged>(path: string | undefined, live?: Live, limit = 50): Pages<Body> {
  const [cursors, setCursors] = useState<string[]>([])
  useEffect(() => setCursors([]), [path])
  const cursor = cursors.at(-1)
  const parameters = `limit=${limit}${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`
  const load = useLoad<Body>(
    path === undefined ? undefined : `${path}${path.includes('?') ? '&' : '?'}${parameters}`,
    live,
  )
  const following = load.data?.next_cursor ?? undefined
  return {
    load,
    number: cursors.length + 1,
    next: following === undefined ? undefined : () => setCursors((before) => [...before, following]),
    previous: cursors.length === 0 ? undefined : () => setCursors((before) => before.slice(0, -1)),
  }
}

/** Buttons for the next and the previous page; nothing if there is one page. */
export function Pager<Body>({ pages }: { pages: Pages<Body> }) {
  if (pages.next === undefined && pages.previous === undefined) return null
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" class="button" disabled={pages.previous === undefined} onClick={pages.previous}>
        Previous
      </button>
      <span>Page {pages.number}</span>
      <button type="button" class="button" disabled={pages.next === undefined} onClick={pages.next}>
        Next
      </button>
    </nav>
  )
}

interface PagedTableProps<Body, Row> {
  pages: Pages<Body>
  what: string
  label: string
  columns: Column<Row>[]
  rowsOf: (body: Body) => readonly Row[]
  rowKey: (row: Row) => string
  empty: ComponentChildren
}

/** A list of the API as a table with pages. */
export function PagedTable<Body, Row>(props: PagedTableProps<Body, Row>) {
  const { pages, what, label, columns, rowsOf, rowKey, empty } = props
  return (
    <>
      <Load load={pages.load} what={what}>
        {(body) => {
          const rows = rowsOf(body)
          return rows.length === 0 ? empty : <Table label={label} columns={columns} rows={rows} rowKey={rowKey} />
        }}
      </Load>
      <Pager pages={pages} />
    </>
  )
}
