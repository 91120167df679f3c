// The rows of one table: pages, order and filters in the address, and dialogs to insert, edit and delete.
import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import { useLoad } from '../../api/use-load.ts'
import { wholeNumber } from '../../format/numbers.ts'
import { Card, ScreenTitle } from '../../parts/basics.tsx'
import { Confirm } from '../../parts/confirm.tsx'
import { Empty, Load } from '../../parts/feedback.tsx'
import { Table } from '../../parts/table.tsx'
import { linkTo, open } from '../../router.ts'
import { CellValue } from '../cell-value.tsx'
import { useTables, type TableColumn, type TableDescription } from './description.ts'
import { Filters } from './filters.tsx'
import {
  isNumberType,
  isWholeType,
  pageSize,
  rowPath,
  rowsPath,
  type Filter,
  type Row,
  type RowsQuery,
} from './row-request.ts'
import { RowForm } from './row-form.tsx'

/** The screen of a table. */
export function RowsScreen({ name, query }: { name: string; query: URLSearchParams }) {
  const load = useTables()
  const table = load.tables?.find((one) => one.name === name)
  return (
    <>
      <p class="crumbs">
        <a href={linkTo(['tables'])}>Tables</a>
      </p>
      {table === undefined ? (
        <>
          <ScreenTitle title={name} />
          <Load load={load} what="the table">
            {() => (
              <Empty title="The REST interface has no such table.">
                <a href={linkTo(['schemas'])}>Reload the schemas</a> if it is new.
              </Empty>
            )}
          </Load>
        </>
      ) : (
        <Rows table={table} query={readQuery(query)} />
      )}
    </>
  )
}

type Shown = { is: 'insert' } | { is: 'edit' | 'delete'; row: Row } | undefined

function Rows({ table, query }: { table: TableDescription; query: RowsQuery }) {
  const { name, columns, isWritable } = table
  const load = useLoad<Row[]>(rowsPath(table, query), undefined, { prefer: 'count=estimated' })
  const [shown, setShown] = useState<Shown>(undefined)
  const close = () => setShown(undefined)
  const go = (change: Partial<RowsQuery>) => open(linkOf(name, { ...query, page: 0, ...change }))
  const hasKey = columns.some(({ isKey }) => isKey)
  const done = () => {
    close()
    load.reload()
  }
  const sorted = (column: TableColumn) => {
    const isThis = query.order === column.name
    const mark = isThis ? (query.isDescending ? ' ↓' : ' ↑') : ''
    const state = isThis ? (query.isDescending ? ', now descending' : ', now ascending') : ''
    return (
      <>
        <button
          type="button"
          class="sort"
          aria-label={`Sort by ${column.name}${state}`}
          onClick={() => go({ order: column.name, isDescending: isThis && !query.isDescending })}
        >
          {column.name}
        </button>
        <span aria-hidden="true">{mark}</span>
        <span class="column-type">{column.type}</span>
      </>
    )
  }
  return (
    <>
      <ScreenTitle title={name} note={hasKey ? undefined : 'Without a primary key, rows can only be read and inserted'}>
        {isWritable && name !== 'schemas' && (
          <button type="button" class="button primary" onClick={() => setShown({ is: 'insert' })}>
            Insert a row
          </button>
        )}
      </ScreenTitle>
      <Filters columns={columns} filters={query.filters} onChange={(filters) => go({ filters })} />
      {shown?.is === 'insert' && <RowForm table={table} row={undefined} onClose={close} onDone={done} />}
      {shown?.is === 'edit' && <RowForm table={table} row={shown.row} onClose={close} onDone={done} />}
      {shown?.is === 'delete' && (
        <Confirm
          title="Delete the row"
          submit={['Delete the row', 'Deleting …']}
          kind="danger"
          onClose={close}
          onConfirm={async () => {
            const path = rowPath(table, shown.row)
            if (path !== undefined) await call('DELETE', path)
            load.reload()
          }}
        >
          <p>
            The row{' '}
            <code>
              {columns
                .filter(({ isKey }) => isKey)
                .map((key) => `${key.name} = ${String(shown.row[key.name])}`)
                .join(', ')}
            </code>{' '}
            of <strong>{name}</strong> is deleted for good.
          </p>
        </Confirm>
      )}
      <Card>
        <Load load={load} what="the rows">
          {(rows) =>
            rows.length === 0 ? (
              <NoRows query={query} name={name} />
            ) : (
              <Table
                label={`Rows of ${name}`}
                rows={rows.map((row, nth) => ({ row, nth }))}
                rowKey={({ nth }) => String(nth)}
                columns={[
                  ...columns.map((column) => ({
                    title: column.name,
                    head: sorted(column),
                    isNumber: isNumberType(column.type),
                    isWhole: isWholeType(column.type),
                    cell: ({ row }: { row: Row }) => <CellValue value={row[column.name]} />,
                  })),
                  ...(isWritable && hasKey && name !== 'schemas'
                    ? [
                        {
                          title: 'Actions',
                          cell: ({ row }: { row: Row }) => (
                            <span class="row-actions">
                              <button type="button" class="button small" onClick={() => setShown({ is: 'edit', row })}>
                                Edit
                              </button>
                              <button
                                type="button"
                                class="button small"
                                onClick={() => setShown({ is: 'delete', row })}
                              >
                                Delete
                              </button>
                            </span>
                          ),
                        },
                      ]
                    : []),
                ]}
              />
            )
          }
        </Load>
        <RowsPager
          query={query}
          count={load.data?.length ?? 0}
          range={load.headers?.get('content-range') ?? ''}
          onPage={(page) => go({ page })}
        />
      </Card>
    </>
  )
}

function NoRows({ query, name }: { query: RowsQuery; name: string }) {
  if (query.filters.length > 0) return <Empty title="No row matches the filters.">Remove a filter to see more.</Empty>
  if (query.page > 0)
    return (
      <Empty title="This page has no rows.">
        <a href={linkOf(name, { ...query, page: 0 })}>Open the first page</a>
      </Empty>
    )
  return <Empty title="There are no rows yet.">Insert the first one here, or from your app.</Empty>
}

interface RowsPagerProps {
  query: RowsQuery
  /** The number of rows on this page. */
  count: number
  /** The header `Content-Range`, such as `0-49/1234`. */
  range: string
  onPage: (page: number) => void
}

function RowsPager({ query: { page }, count, range, onPage }: RowsPagerProps) {
  const [, total] = range.split('/', 2)
  if (count === 0 && page === 0) return null
  const first = page * pageSize + 1
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" class="button" disabled={page === 0} onClick={() => onPage(page - 1)}>
        Previous
      </button>
      <span>
        {count === 0 ? 'No rows' : `Rows ${wholeNumber(first)} to ${wholeNumber(first + count - 1)}`}
        {total !== undefined && /^\d+$/.test(total) && ` of about ${wholeNumber(total)}`}
      </span>
      <button type="button" class="button" disabled={count < pageSize} onClick={() => onPage(page + 1)}>
        Next
      </button>
    </nav>
  )
}

function readQuery(query: URLSearchParams): RowsQuery {
  return {
    order: query.get('order') ?? undefined,
    isDescending: query.get('descending') === 'yes',
    filters: readFilters(query.get('filters')),
    page: Number(/^\d{1,9}$/.exec(query.get('page') ?? '')?.[0] ?? 0),
  }
}

function readFilters(text: string | null): Filter[] {
  try {
    const filters: unknown = JSON.parse(text ?? '[]')
    if (!Array.isArray(filters)) return []
    return filters.filter(
      (one: unknown): one is Filter =>
        Array.isArray(one) && one.length === 3 && one.every((part) => typeof part === 'string'),
    )
  } catch {
    return []
  }
}

function linkOf(name: string, { order, isDescending, filters, page }: RowsQuery): string {
  return linkTo(['tables', name], {
    order: order ?? '',
    descending: isDescending ? 'yes' : '',
    filters: filters.length === 0 ? '' : JSON.stringify(filters),
    page: page === 0 ? '' : String(page),
  })
}
