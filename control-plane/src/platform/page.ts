// Pages of lists.

/** One page of a list. */
export interface Page<Item> {
  items: Item[]
  /** Opaque cursor of the next page; undefined on the last page. */
  nextCursor: string | undefined
}

/** Request for a page of at most `limit` items. `cursor` is the previous page's `nextCursor`, undefined for the first. */
export interface PageRequest {
  limit: number
  cursor: string | undefined
}
