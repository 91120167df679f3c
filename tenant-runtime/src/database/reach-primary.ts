// Waits for the next primary of a database with replicas, while a failover takes place. Nothing has been sent to Postgres
// before a connection is open, so every request may wait for one.
import { setTimeout as delay } from 'node:timers/promises'
import pg from 'pg'
import type { ServerKind } from './create-client.ts'

const retryMilliseconds = 250

/** SQLSTATEs of a server that starts or stops. */
const passing = new Set(['57P01', '57P02', '57P03'])

/** Whether another attempt may succeed: no server responded, it was starting or stopping, or it was a replica. */
export function mayPass(error: unknown): boolean {
  return !(error instanceof pg.DatabaseError) || passing.has(error.code ?? '')
}

interface ReachOptions {
  /** The end of the wait, on the clock of `now`. */
  deadline: number
  /** Returns monotonic milliseconds. */
  now: () => number
  /** Whether to give up at once. */
  isClosed: () => boolean
  /** Called after each attempt that failed and is repeated. */
  onFailure: () => void
}

/** Connects, and repeats a failed attempt that may succeed later. @throws the last error of `connect` */
export async function reachServer<T>(
  connect: () => Promise<T>,
  { deadline, now, isClosed, onFailure }: ReachOptions,
): Promise<T> {
  for (;;) {
    try {
      return await connect()
    } catch (error) {
      if (!mayPass(error) || isClosed() || now() + retryMilliseconds > deadline) throw error
      onFailure()
    }
    await delay(retryMilliseconds)
  }
}

/** A message of Postgres. */
interface ParameterStatus {
  parameterName: string
  parameterValue: string
}

/**
 * Connects a client.
 * @throws the errors of `connect`; an Error when the server is a replica, and a primary is required
 */
export async function connectTo(client: pg.Client, server: ServerKind): Promise<void> {
  const reported = new Map<string, string>()
  // node-postgres has no public way to the parameters that the server reports during a login.
  const { connection } = client as unknown as { connection: NodeJS.EventEmitter }
  connection.on('parameterStatus', ({ parameterName, parameterValue }: ParameterStatus) =>
    reported.set(parameterName, parameterValue),
  )
  await client.connect()
  if (server === 'primary' && reported.get('in_hot_standby') === 'on')
    throw new Error('The server is a replica, which accepts no changes.')
}
