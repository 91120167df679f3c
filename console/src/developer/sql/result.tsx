// The rows that a statement has returned.
import { wholeNumber } from '../../format/numbers.ts'
import { Card } from '../../parts/basics.tsx'
import { Empty, Notice } from '../../parts/feedback.tsx'
import { Table } from '../../parts/table.tsx'
import { CellValue } from '../cell-value.tsx'
import { isNumberType, isWholeType } from '../tables/row-request.ts'

/** The response of `/sql/v1`. */
export interface SqlBody {
  columns: { name: string; type: string }[]
  rows: (string | null)[][]
  /** Postgres' command tag; null for rows that were cut. */
  command: string | null
  truncated: boolean
  duration_ms: number
}

interface ResultRow {
  values: (string | null)[]
  nth: number
}

/** A card with the rows. */
export function Result({ result }: { result: SqlBody }) {
  const { columns, rows, command, truncated, duration_ms: milliseconds } = result
  return (
    <Card
      title="Result"
      actions={
        <span role="status" class="dim">
          {command !== null && <code>{command}</code>} · {wholeNumber(rows.length)} {rows.length === 1 ? 'row' : 'rows'}{' '}
          in {wholeNumber(milliseconds)} ms
        </span>
      }
    >
      {truncated && (
        <Notice kind="warn">There are more rows than are shown. Add a LIMIT, or select fewer columns.</Notice>
      )}
      {columns.length === 0 || rows.length === 0 ? (
        <Empty title="The statement returned no rows." />
      ) : (
        <Table
          label="Rows of the result"
          rows={rows.map((values, nth): ResultRow => ({ values, nth }))}
          rowKey={({ nth }) => String(nth)}
          columns={columns.map(({ name, type }, at) => ({
            title: name,
            isNumber: isNumberType(type),
            isWhole: isWholeType(type),
            head: (
              <>
                {name} <span class="column-type">{type}</span>
              </>
            ),
            cell: ({ values }: ResultRow) => <CellValue value={values[at]} />,
          }))}
        />
      )}
    </Card>
  )
}
