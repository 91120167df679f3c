// How the statements of a home run.
import type { Readable } from 'node:stream'
import type { ArrivingResult } from '../bounds/index.ts'
import type { Connections, Login } from './connections.ts'
import type { PrimaryAttempt } from './replicas/replicas.ts'
import type { Result } from './statement.ts'

/** A server on which statements run. */
export interface Server {
  connections: Connections
  login: Login
}

/** Options of statements that run as one transaction. */
export interface RunOptions {
  /** Whether the statements change nothing. After a broken connection, they are repeated on another. */
  onlyReads?: boolean
  /** Whether reads may run at a replica of a cluster without a primary. */
  isAnywhere?: boolean
}

/** Options of one round trip. */
export interface RoundTripOptions {
  onlyReads: boolean
  /** Whether all callers are anonymous. */
  isAnonymous: boolean
  /** The number of times that it may run again. */
  repeats: number
  /** The attempt at the primary, which ends the round trip and closes its connection. */
  attempt?: PrimaryAttempt | undefined
  /** The server; absent: the primary, which may become another one. */
  server?: Server
}

/** Options of a streamed round trip. */
export interface StreamOptions {
  /** The memory of the rows. */
  result: ArrivingResult
  /** Whether the caller keeps only the rows that it took last. */
  isTakenInParts?: boolean
  isForeign?: boolean
  maxBytes?: number
  attempt?: PrimaryAttempt | undefined
  /** The server; absent: the primary. */
  server?: Server
}

/** A response of unlimited length. */
export interface StreamedResponse {
  /** The results of the statements before the last. */
  before: Result[]
  /** The last statement's rows in their frame. The caller may destroy it to cancel the transaction. */
  body: Readable
}
