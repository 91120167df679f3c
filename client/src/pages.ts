// Reads a list of the API to its end, page by page.

/** A page of a list. `next_cursor` is null on the last page. */
export interface Page {
  readonly next_cursor: string | null
}

/**
 * Yields the pages of a list one after another. The caller may stop at any page.
 * @param read reads the page that begins at the cursor; undefined is the first page
 */
export async function* pages<One extends Page>(
  read: (cursor: string | undefined) => Promise<One>,
): AsyncGenerator<One> {
  let cursor: string | undefined
  do {
    const page = await read(cursor)
    yield page
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined)
}
