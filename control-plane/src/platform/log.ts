// What the control plane's jobs write to its log.

/** A structured log, as pino writes it; `details` become fields of the line, `err` among them an error with its stack. */
export interface Log {
  /** Logs what happened as it should. */
  info(details: object, message: string): void
  /** Logs what went wrong and is tried again, or what an operator should look at. */
  warn(details: object, message: string): void
  /** Logs what went wrong for good. */
  error(details: object, message: string): void
}
