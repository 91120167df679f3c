// The form in which the pages of PostgREST's documentation are recorded: their requests, and what they show of each response.

export interface Page {
  /** Path of the page below `docs/` in PostgREST's repository, without its ending. */
  readonly page: string
  /** The version of the page that was read: the first digits of a commit, or what the page contains. */
  readonly read: string
  readonly sections: readonly Section[]
}

export interface Section {
  readonly section: string
  /** Our own statements for the objects that the section assumes. They run before its requests, as the tenant's login. */
  readonly sql?: string
  /** The tenant's settings, as members of a reload. Those that are not named have their defaults. */
  readonly settings?: Readonly<Record<string, unknown>>
  readonly requests: readonly DocumentedRequest[]
}

export interface DocumentedRequest {
  /** Method and path. The test percent-encodes blanks and characters beyond ASCII. */
  readonly request: `${'GET' | 'HEAD' | 'POST' | 'PATCH' | 'PUT' | 'DELETE' | 'OPTIONS'} /${string}`
  /** The claims of the caller's token, or `service`. Without it the caller is anonymous. */
  readonly as?: 'service' | Record<string, unknown>
  readonly headers?: Record<string, string>
  /** Objects and arrays are sent as JSON, texts and bytes as they are. */
  readonly body?: object | string | Buffer
  readonly response: DocumentedResponse
  /** The difference between the record and the page, because the page contradicts itself or its own SQL. */
  readonly correction?: string
  /** The reason why the response here differs. Without it, the response must be the documented one. */
  readonly here?: Difference
}

/** The parts of a response that the page shows, or that follow from its text and from our rows. Nothing else is compared. */
export interface DocumentedResponse {
  readonly status: number
  /** Values of headers. `undefined` means that the response does not have the header. */
  readonly headers?: Record<string, string | RegExp | undefined>
  /**
   * The body as JSON. Of an error, only the recorded members count. Without `order` in the path, rows may have any order. A
   * list that ends with `..` contains the recorded elements among others, as in the documentation.
   */
  readonly body?: unknown
  /** The body as text. */
  readonly text?: string | RegExp
  /** Statements, and the rows that each returns after the request. */
  readonly stored?: Record<string, readonly unknown[]>
}

/** A difference that the specification or the isolation of tenants demands, or a feature that is missing. */
export type Difference =
  { readonly demanded: string; readonly instead: DocumentedResponse } | { readonly missing: string }
