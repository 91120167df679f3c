// The error of a host call. The function receives its code and message, and may handle it.

export class CallError extends Error {
  readonly code: string
  /** Further fields of the error that the function receives. */
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
