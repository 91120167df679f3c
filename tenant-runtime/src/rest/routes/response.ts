// The result of a statement that makes a response.

export interface RestResponse {
  body: string
  /** The number of rows in the body. */
  n: number
  /** The number of all matching rows, when they were counted. */
  total: number | undefined
  /** The number of rows that a change wrote, and of those that are new. */
  changed: number
  made: number | undefined
  /** The keys of the last row of a page by keys. */
  last: string | undefined
}
