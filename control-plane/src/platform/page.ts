// A part of a list, and what is asked for it.

export interface Page<Item> {
  items: Item[]
  /** Opaque; undefined on the last page. */
  nextCursor: string | undefined
}

export interface PageRequest {
  limit: number
  cursor: string | undefined
}
