// What a command has of its process: streams, environment and the signal of Ctrl-C.
import type { Readable, Writable } from 'node:stream'

/** The process that a command runs in. Tests may pass another one. */
export interface Terminal {
  readonly stdin: Readable & { readonly isTTY?: boolean; setRawMode?(isRaw: boolean): unknown }
  readonly stdout: Writable & { readonly isTTY?: boolean }
  readonly stderr: Writable & { readonly isTTY?: boolean }
  readonly env: Readonly<Record<string, string | undefined>>
  /** The directory that relative paths begin at. */
  readonly directory: string
  /** Whether a person can respond: standard input and standard error are terminals. */
  readonly isInteractive: boolean
  /** The current time in milliseconds since 1970. */
  readonly now: () => number
  /** Aborts when the user presses Ctrl-C, or the process receives SIGTERM or SIGHUP. */
  readonly signal: AbortSignal
}
