// Lets reads continue while a cluster has no primary: at a replica that has every acknowledged change. Its connections are opened only
// during a failover, or while the primary is slow to accept a login.
import { Resolver } from 'node:dns/promises'
import { isIPv4 } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type pg from 'pg'
import type { Results } from '../../bounds/index.ts'
import { RuntimeError } from '../../errors.ts'
import { SharedRun } from '../../shared-run.ts'
import { Connections, type ConnectionLimits } from '../connections.ts'
import { runtimeLogin, runtimeLoginAt, type HomeLogins } from '../home-logins.ts'
import { MessageTooLongError } from '../message-guard.ts'
import { RoundTrip } from '../round-trip.ts'
import { RoundTripError } from '../round-trip-error.ts'
import { withSignal } from '../with-signal.ts'
import { isRunning, PrimaryWatch } from './primary-watch.ts'
import {
  freshReplica,
  positionStatement,
  readPosition,
  type FreshReplica,
  type ReplicaPosition,
} from './replica-position.ts'

/** The time after which a read without a result tests whether the primary is lost. Each further test waits twice as long. */
const stallMilliseconds = 750
/** The time that such a test has before the replicas are observed meanwhile. A primary that responds does so sooner. */
const testMilliseconds = 250
/** The pause between two attempts at replicas. */
const retryMilliseconds = 100
/** The maximum time of a login at a member, and in all until it has reported its position. */
const connectMilliseconds = 2_000
const positionMilliseconds = 2_000
const idleMilliseconds = 5_000
/** The time that replicas have to report theirs after the primary has responded. */
const graceMilliseconds = 100
/** The time for which the addresses of a member's name are used, and the maximum time until they are found. */
const addressMilliseconds = 2_000
const resolveMilliseconds = 500

/** A replica of a home that has every acknowledged change, and the connections to it. */
export interface ReadableReplica {
  connections: Connections
  login: ReturnType<typeof runtimeLoginAt>
  replica: FreshReplica
}

/** The error of a read at a replica that has not replayed everything yet, or that became another server. */
export class StaleReplicaError extends Error {}

/** An attempt at the primary, which may be ended because the primary, or its connection, is lost. */
export interface PrimaryAttempt {
  readonly signal: AbortSignal
  /** Process ID of the session on which it runs. */
  pid: number | undefined
}

/** A read that can run at a primary or at a replica. */
export interface FailoverRead<T> {
  /** Runs it at the primary. */
  atPrimary: (attempt?: PrimaryAttempt) => Promise<T>
  /** Runs it at a replica. @throws StaleReplicaError without a result that could be older */
  atReplica: (at: ReadableReplica) => Promise<T>
}

/** The replica to read from, if the positions that are requested suffice; `primary` if a member is the primary. */
type Observed = ReadableReplica | 'primary' | undefined
type Observation = Promise<Observed>

interface ReplicasOptions {
  limits: ConnectionLimits
  results: Results
  /** Returns monotonic milliseconds. */
  now: () => number
}

/** The replicas of all clusters of this runtime's tenants. */
export class Replicas {
  readonly #options: ReplicasOptions
  readonly #primaries: PrimaryWatch
  readonly #connections = new Map<string, Connections>()
  readonly #addresses = new Map<string, { at: number; found: Promise<string[]> }>()
  /** Members that have not reported their position to a tenant yet. */
  readonly #awaited = new Set<string>()
  /** Each read uses positions that were requested after its begin. */
  readonly #observations = new SharedRun(
    (home: HomeLogins) => this.#observe(home),
    ({ tenantId }) => tenantId,
  )

  /** Creates the replicas, without connections. */
  constructor(options: ReplicasOptions) {
    this.#options = options
    this.#primaries = new PrimaryWatch(options.now)
  }

  /** The number of open connections to replicas. */
  get open(): number {
    return this.#connections.values().reduce((sum, { load }) => sum + load.open, 0)
  }

  /**
   * Runs a read at the primary or, while no primary responds, at a replica that has every change which was acknowledged before.
   * @throws the errors of the read; RuntimeError DATABASE_UNAVAILABLE when neither is possible in time
   */
  async read<T>(home: HomeLogins, read: FailoverRead<T>): Promise<T> {
    const { now, limits } = this.#options
    const deadline = now() + limits.failoverMilliseconds
    for (;;) {
      let observing: Observation | undefined
      if (!this.#primaries.isLost(runtimeLogin(home))) {
        const outcome = await this.#atPrimary(home, read)
        if ('value' in outcome) return outcome.value
        observing = outcome.observing
      }
      // The home is not served any more.
      if (home.url === '') return read.atPrimary()
      try {
        const at = await (observing ?? this.#observations.run(home))
        // Only the way to it is lost, as with the host of a router.
        if (at === 'primary') await this.#primaries.probe(runtimeLogin(home))
        else if (at !== undefined) return await read.atReplica(at)
      } catch (error) {
        if (needsPrimary(error)) return read.atPrimary()
        if (!isPassing(error)) throw error
      }
      if (now() >= deadline) throw new RuntimeError('DATABASE_UNAVAILABLE', 'The database does not respond.')
      await delay(retryMilliseconds)
    }
  }

  /** Closes a tenant's connections after its deletion, or its move to other runtimes. */
  evict(tenantId: string): void {
    for (const connections of this.#connections.values()) connections.evict(tenantId)
  }

  /** Rejects new work and closes every idle connection. */
  async close(): Promise<void> {
    await Promise.all([...this.#connections.values()].map((connections) => connections.close()))
  }

  /** Runs a read at the primary. @returns an observation that may have begun, if the primary is lost, or the connection to it */
  async #atPrimary<T>(
    home: HomeLogins,
    { atPrimary }: FailoverRead<T>,
  ): Promise<{ value: T } | { observing: Observation | undefined }> {
    const ending = new AbortController()
    const session: PrimaryAttempt = { signal: ending.signal, pid: undefined }
    const attempt = atPrimary(session).then((value) => ({ value }))
    for (let milliseconds = stallMilliseconds; ; milliseconds *= 2) {
      const { promise: stalled, resolve } = Promise.withResolvers<undefined>()
      const timer = setTimeout(resolve, milliseconds, undefined)
      const outcome = await Promise.race([attempt, stalled]).finally(() => clearTimeout(timer))
      if (outcome !== undefined) return outcome
      let observing: Observation | undefined
      const observe = () => {
        observing = this.#observations.run(home)
        observing.catch(() => undefined)
      }
      const observation = setTimeout(observe, testMilliseconds)
      const isLost = await Promise.race([attempt, this.#isLost(home, session)]).finally(() => clearTimeout(observation))
      if (typeof isLost === 'object') return isLost
      if (!isLost) continue
      attempt.catch(() => undefined)
      ending.abort(new Error('The primary does not respond.'))
      return { observing }
    }
  }

  /** Whether the primary is lost, or responds without a query of the session. */
  async #isLost(home: HomeLogins, { pid }: PrimaryAttempt): Promise<boolean> {
    const login = runtimeLogin(home)
    if (await this.#primaries.probe(login)) return true
    return pid !== undefined && !(await isRunning(login, pid))
  }

  /** Requests the positions of all members. */
  async #observe(home: HomeLogins): Observation {
    const found = await Promise.all((home.members ?? []).map((name) => this.#resolve(name)))
    // A member may have another container for a while, which also confirms commits. Docker knows no address of one whose host is lost.
    const members = found.reduce((sum, { length }) => sum + Math.max(1, length), 0)
    const positions = new Map<string, ReplicaPosition>()
    const { promise, resolve } = Promise.withResolvers<Observed>()
    const reports = found.flat().map(async (address) => {
      const position = await this.#positionAt(home, address)
      if (position === undefined) return
      if (position === 'primary') {
        await delay(graceMilliseconds)
        resolve(position)
        return
      }
      positions.set(address, position)
      const replica = freshReplica([...positions.values()], members)
      const [at] = [...positions].find(([, { server }]) => server === replica?.server) ?? []
      if (replica === undefined || at === undefined) return
      resolve({ connections: this.#connectionsTo(at), login: runtimeLoginAt(home, at), replica })
    })
    void Promise.allSettled(reports).then(() => resolve(undefined))
    return promise
  }

  /** Requests the position of a member. @returns undefined if it does not report one in time */
  async #positionAt(home: HomeLogins, address: string): Promise<ReplicaPosition | 'primary' | undefined> {
    const key = `${home.tenantId} ${address}`
    if (this.#awaited.has(key)) return undefined
    this.#awaited.add(key)
    const connections = this.#connectionsTo(address)
    const login = runtimeLoginAt(home, address)
    const signal = AbortSignal.timeout(positionMilliseconds)
    try {
      const connection = await connections.acquire(login, { signal })
      let reusable = false
      try {
        const roundTrip = new RoundTrip([positionStatement], connection.prepared)
        // node-postgres takes any object with `submit` and the handlers; its types name only `submit`.
        connection.client.query(roundTrip as unknown as pg.Submittable)
        const [result] = await withSignal(roundTrip.done, signal, () => undefined)
        reusable = true
        const [row] = result?.rows ?? []
        return row === undefined ? 'primary' : readPosition(row)
      } finally {
        connections.release(login, connection, reusable)
      }
    } catch {
      return undefined
    } finally {
      this.#awaited.delete(key)
    }
  }

  #connectionsTo(address: string): Connections {
    const known = this.#connections.get(address)
    if (known !== undefined) return known
    for (const [other, connections] of this.#connections) {
      if (connections.load.open > 0) continue
      this.#connections.delete(other)
      void connections.close()
    }
    const { limits, results, now } = this.#options
    const own = { ...limits, connectMilliseconds, idleMilliseconds, failoverMilliseconds: 0 }
    const connections = new Connections(own, results, now, 'any')
    this.#connections.set(address, connections)
    return connections
  }

  /** Returns all addresses of a member's name, with its port; none if the name is not known now. */
  #resolve(member: string): Promise<string[]> {
    const { now } = this.#options
    const known = this.#addresses.get(member)
    if (known !== undefined && now() - known.at < addressMilliseconds) return known.found
    const found = resolveMember(member)
    this.#addresses.set(member, { at: now(), found })
    return found
  }
}

async function resolveMember(member: string): Promise<string[]> {
  const { hostname, port } = new URL(`postgresql://${member}`)
  if (isIPv4(hostname)) return [member]
  try {
    const found = await new Resolver({ timeout: resolveMilliseconds, tries: 1 }).resolve4(hostname)
    return found.map((address) => `${address}:${port}`)
  } catch {
    return []
  }
}

/** SQLSTATEs of what a replica cannot do: changes, and functions that need a primary. */
const ofPrimaries = new Set(['25006', '55000'])

function needsPrimary(error: unknown): boolean {
  return error instanceof RoundTripError && ofPrimaries.has(error.sqlstate ?? '')
}

/** SQLSTATEs of a session that ends, and of a query that was in the way of the replay. */
const passingStates = new Set(['57P01', '57P02', '57P03', '57P05', '40001', '40P01'])
const passingCodes = new Set(['DATABASE_UNAVAILABLE', 'DATABASE_BUSY'])

/** Whether another attempt may succeed. */
function isPassing(error: unknown): boolean {
  if (error instanceof StaleReplicaError) return true
  if (error instanceof RuntimeError) return passingCodes.has(error.code)
  if (!(error instanceof RoundTripError) || error.cause instanceof MessageTooLongError) return false
  return error.sqlstate === undefined ? !(error.cause instanceof RuntimeError) : passingStates.has(error.sqlstate)
}
