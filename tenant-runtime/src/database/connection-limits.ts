// The limits of the runtime's connections to Postgres. Pure.
import type { ReadingTime } from './row-stream.ts'

/** The limits of the connections to one server. */
export interface ConnectionLimits {
  total: number
  perTenant: number
  /** The time after which an idle connection is closed. */
  idleMilliseconds: number
  /** The maximum wait for a connection, after which the request receives a 503. */
  waitMilliseconds: number
  /** The maximum number of waiting requests of one tenant. Further ones are rejected at once. */
  maxWaiting: number
  /** The maximum time of a login. Postgres rejects one at once when it is down, and takes seconds when it is busy. */
  connectMilliseconds: number
  /** The maximum wait of a request for the next primary, while no primary can be reached. 0: it fails at once. */
  failoverMilliseconds: number
  statementMilliseconds: number
  /** The time limits for reading a long response: without any progress, and in total. */
  reading: ReadingTime
}

export const defaultConnectionLimits: ConnectionLimits = {
  total: 100,
  perTenant: 16,
  idleMilliseconds: 30_000,
  waitMilliseconds: 5_000,
  maxWaiting: 512,
  connectMilliseconds: 5_000,
  failoverMilliseconds: 0,
  statementMilliseconds: 30_000,
  reading: { stallMilliseconds: 60_000, maxMilliseconds: 600_000 },
}
