// What a statement of an answer gives.

export interface RestResponse {
  body: string
  /** Rows in it. */
  n: number
  /** All that match, where they were counted. */
  total: number | undefined
  /** Of a change: rows that were written, and those of them that are new. */
  changed: number
  made: number | undefined
  /** Of a page by keys: those of its last row. */
  last: string | undefined
}
