// A part of a list, and what is asked for it.

/** One page of a list. */
export interface Page<Item> {
  items: Item[]
  /** Opaque; undefined on the last page. */
  nextCursor: string | undefined
}

/** Which page is wanted: at most `limit` items; `cursor` is the `nextCursor` of the page before, undefined for the first. */
export interface PageRequest {
  limit: number
  cursor: string | undefined
}
