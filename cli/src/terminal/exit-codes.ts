// The exit codes of the command. docs/command-line.md lists them.
import { ApiError, ConnectionError } from '@tenantry/client'
import { CommanderError } from 'commander'

/** The exit codes by their meaning. */
export const exitCodes = {
  success: 0,
  /** An error without a code of its own. */
  failure: 1,
  /** The command line is wrong, or lacks what only a terminal could supply. */
  usage: 2,
  /** No key, an invalid key, or a key without the scope that is needed. */
  access: 3,
  notFound: 4,
  /** The request conflicts with the present state. */
  conflict: 5,
  /** The service rejects the request as invalid. */
  rejected: 6,
  /** The service cannot be reached, or is not available. */
  unavailable: 7,
  /** An operation or a check has failed. */
  failedOperation: 8,
  /** There are differences, and `--exit-code` requests that they are reported so. */
  differences: 9,
  /** The user pressed Ctrl-C, or the process received SIGTERM or SIGHUP. */
  interrupted: 130,
  /** The reader of the output has ended before the command. It is the code of a process that SIGPIPE ends. */
  outputClosed: 141,
} as const

/** An error with an exit code of its own. */
export class CommandError extends Error {
  override readonly name = 'CommandError'
  /** The exit code of the process. */
  readonly exitCode: number

  constructor(message: string, exitCode: number, options?: ErrorOptions) {
    super(message, options)
    this.exitCode = exitCode
  }
}

/** Creates the error of a command line that is wrong. */
export function usageError(message: string, options?: ErrorOptions): CommandError {
  return new CommandError(message, exitCodes.usage, options)
}

/** The user pressed Ctrl-C. `hint` states what continues, and how to follow it. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted'
  /** A text for the user; undefined if nothing continues. */
  readonly hint: string | undefined

  constructor(hint?: string) {
    super('Interrupted.')
    this.hint = hint
  }
}

/** Returns the exit code of an error. */
export function exitCodeOf(error: unknown): number {
  if (error instanceof CommandError) return error.exitCode
  if (error instanceof Interrupted) return exitCodes.interrupted
  if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.success : exitCodes.usage
  if (error instanceof ConnectionError) return exitCodes.unavailable
  if (error instanceof ApiError) return exitCodeOfStatus(error.status)
  return exitCodes.failure
}

function exitCodeOfStatus(status: number): number {
  if (status === 401 || status === 403) return exitCodes.access
  if (status === 404 || status === 410) return exitCodes.notFound
  if (status === 409 || status === 412 || status === 423) return exitCodes.conflict
  if (status === 429 || status >= 502) return exitCodes.unavailable
  return status >= 400 && status < 500 ? exitCodes.rejected : exitCodes.failure
}
