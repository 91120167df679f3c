// Lists of the API: options of paging, and reading as many pages as they request.
import { pages, type Page } from '@tenantry/client'
import type { Command } from 'commander'
import type { Call } from '../call.ts'

const defaultRows = 100
/** The maximum number of rows in a page of the API. */
export const maxPageRows = 1000

/** The query parameters of a page. */
export interface PageParameters {
  limit: string
  cursor?: string
}

/** Adds the options `--limit` and `--all` to a command that lists. */
export function withPaging(command: Command): Command {
  return command.option('--limit <rows>', `at most this many rows (default ${defaultRows})`).option('--all', 'all rows')
}

/** Returns the maximum number of rows that the options set; Infinity for all. */
export function rowLimit(call: Call): number {
  return call.isSet('all') ? Infinity : (call.integer('limit', 1, 1_000_000_000) ?? defaultRows)
}

/** Writes as progress that a list has more rows than it shows. */
export function reportMore(call: Call, limit: number): void {
  call.output.progress(`There are more than ${limit} rows. Use --limit or --all.`)
}

/**
 * Reads rows of a list until the limit that the options set. Progress reports when there are more.
 * @param read reads one page
 * @param rowsOf returns the rows of a page
 */
export async function readRows<One extends Page, Row>(
  call: Call,
  read: (parameters: PageParameters) => Promise<One>,
  rowsOf: (page: One) => readonly Row[],
): Promise<Row[]> {
  const limit = rowLimit(call)
  const rows: Row[] = []
  const readFrom = (cursor: string | undefined) =>
    read({
      limit: String(Math.min(limit - rows.length, maxPageRows)),
      ...(cursor === undefined ? {} : { cursor }),
    })
  for await (const page of pages(readFrom)) {
    rows.push(...rowsOf(page))
    if (rows.length < limit) continue
    if (page.next_cursor !== null) reportMore(call, limit)
    break
  }
  return rows.slice(0, limit)
}
