// The log of the control plane's jobs.

/** A structured log in pino's form. `details` become fields of the line; `err` is an error with its stack. */
export interface Log {
  /** Logs a normal event. */
  info(details: object, message: string): void
  /** Logs a failure that is retried, or an event that an operator should check. */
  warn(details: object, message: string): void
  /** Logs a failure that is not retried. */
  error(details: object, message: string): void
}
