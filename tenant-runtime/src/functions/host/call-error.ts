// A host call that failed, as its function is told: a code and a message, which it may handle.

export class CallError extends Error {
  readonly code: string
  /** Further members of what the function is told. */
  readonly extra: Readonly<Record<string, string>>

  constructor(
    code: string,
    message: string,
    { cause, extra = {} }: { cause?: unknown; extra?: Record<string, string> } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause })
    this.name = 'CallError'
    this.code = code
    this.extra = extra
  }
}
