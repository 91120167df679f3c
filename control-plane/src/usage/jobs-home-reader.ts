// Reads the homes of all tenants for the ledger: each once an hour, and more often those that are used. The control
// plane sends the requests; no other part can push amounts of homes. A region that does not respond delays no other one.
import { hourMilliseconds } from '@tenantry/contract'
import PQueue from 'p-queue'
import type { Clock } from '../platform/clock.ts'
import { firstResponse, type Region, type CountersProbe, type RegionProbe } from '../reconcile/index.ts'
import { repeat } from '../platform/repeat.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { forGood, heldReading, incompleteBefore, readingOf, type HomeReading, type HomeState } from './home-reading.ts'
import type { HomeReadingStore, HomeToRead } from './store-home-readings.ts'
import type { UsageLedger } from './store-ledger.ts'

/** The dependencies of the job that reads stored bytes and function runs of homes into the ledger. */
export interface HomeReaderDeps {
  store: HomeReadingStore
  ledger: Pick<UsageLedger, 'recordHome'>
  regions: ReadonlyMap<string, Pick<Region, 'config' | 'runtimeUrls'>>
  probe: CountersProbe & Pick<RegionProbe, 'activity'>
  clock: Clock
  /**
   * Receives the outcome of each reading. `held`: the home was not read, or did not respond, and is assumed to store
   * the same bytes.
   */
  measure: (outcome: 'read' | 'held' | 'failed') => void
  log: Pick<Log, 'warn'>
}

const intervalMilliseconds = 60_000
/** The time between two readings of a tenant that is used. */
const activeMilliseconds = 5 * 60_000
/** A runtime that does not respond for this long keeps no hour open. What it reports later is corrected. */
const timeoutMilliseconds = 2 * hourMilliseconds
/** The maximum number of simultaneous reads in each region. */
const maxConcurrentReads = 8
const maxHours = 999

/** Creates the job, which runs while this control plane leads. */
export function readHomes(deps: HomeReaderDeps): (leadership: Leadership) => Promise<void> {
  const reader = createHomeReader(deps)
  const { clock, log } = deps
  return async ({ lost }) => {
    await repeat(
      {
        clock,
        work: reader.poll,
        onError: (error) =>
          log.warn({ err: error }, 'The homes could not be read for the ledger. The read is retried.'),
      },
      lost,
    )
    await reader.idle()
  }
}

/** Creates the reader of tenants' homes. `poll` begins to read the homes that are due, `readNow` reads one at once. */
export function createHomeReader({ store, ledger, regions, probe, clock, measure, log }: HomeReaderDeps) {
  const save = async (readings: HomeReading[], state: HomeState): Promise<void> => {
    // The state comes last, because repeating a recording after a crash has no effect.
    for (const reading of readings) await ledger.recordHome(reading)
    await store.save(state)
  }

  const hold = async (state: HomeState, until: Date): Promise<void> => {
    if (until <= state.readAt) return
    const held = heldReading(state, until)
    await save([held.reading], held.state)
  }

  /** Ends the records of a deleted home, whose hours then wait for no source. */
  const end = async (state: HomeState, endedAt: Date): Promise<void> => {
    await hold(state, endedAt)
    await ledger.recordHome({ tenantId: state.tenantId, boot: state.books, hours: [], completeUntil: forGood })
    await store.evict(state.tenantId)
  }

  const readCounters = async (home: HomeToRead, at: Date, signal: AbortSignal) => {
    const region = regions.get(home.regionId)
    if (region === undefined) throw new Error(`The region ${home.regionId} is not configured.`)
    const since =
      home.state === undefined
        ? maxHours
        : Math.ceil((at.getTime() - home.state.readAt.getTime()) / hourMilliseconds) + 1
    return firstResponse(region.runtimeUrls({ id: home.tenantId, isolation: home.isolation }), (url) =>
      probe.tenantRecords(url, home.tenantId, Math.min(since, maxHours), signal),
    )
  }

  const read = async (home: HomeToRead, signal: AbortSignal): Promise<void> => {
    const { state, endedAt, isRunning } = home
    if (endedAt !== undefined) {
      if (state !== undefined) await end(state, endedAt)
      return
    }
    try {
      if (!isRunning && state !== undefined && home.isolation !== 'schema-per-tenant') {
        await hold(state, clock.now())
        measure('held')
        return
      }
      // Usage during the request belongs to the next reading.
      const at = clock.now()
      const counters = await readCounters(home, at, signal)
      const { readings, state: next } = readingOf(state, counters, at, home.away)
      await save(readings, next)
      measure('read')
    } catch (cause) {
      signal.throwIfAborted()
      measure(isRunning ? 'failed' : 'held')
      if (isRunning)
        log.warn({ tenant: home.tenantId, err: cause }, 'A home could not be read for the ledger. The read is retried.')
      if (state !== undefined && (!isRunning || clock.now().getTime() - state.readAt.getTime() > timeoutMilliseconds))
        await hold(state, clock.now())
    }
  }

  /** Returns the time of each tenant's last request, as far as gateways respond. */
  const lastSeen = async (signal: AbortSignal): Promise<Map<string, number>> => {
    const seen = new Map<string, number>()
    const urls = [...regions.values()].flatMap(({ config }) => config.gateway_internal_urls)
    await Promise.all(
      urls.map(async (url) => {
        const activity = await probe.activity(url, signal).catch(() => undefined)
        for (const [tenantId, { last_request_at, open }] of Object.entries(activity?.tenants ?? {})) {
          const at = open > 0 ? clock.now().getTime() : Date.parse(last_request_at)
          seen.set(tenantId, Math.max(at, seen.get(tenantId) ?? 0))
        }
      }),
    )
    return seen
  }

  /** The reads in progress, by region. */
  const reading = new Map<string, Promise<void>>()

  const readRegion = async (homes: readonly HomeToRead[], signal: AbortSignal): Promise<void> => {
    const queue = new PQueue({ concurrency: maxConcurrentReads })
    const errors: unknown[] = []
    for (const home of homes)
      void queue.add(() =>
        signal.aborted ? undefined : read(home, signal).catch((error: unknown) => errors.push(error)),
      )
    await queue.onIdle()
    if (errors.length > 0 && !signal.aborted)
      log.warn({ err: errors[0] }, 'The homes could not be read for the ledger. The read is retried.')
  }

  /**
   * Polls once: begins to read the homes that are due, except in regions where the reads of an earlier poll are in progress.
   * @returns the milliseconds until the next poll
   */
  const poll = async (signal: AbortSignal): Promise<number> => {
    const seen = await lastSeen(signal)
    const now = clock.now()
    const readBefore = incompleteBefore(now)
    const activeBefore = new Date(now.getTime() - activeMilliseconds)
    const homes = await store.dueHomes({
      readBefore,
      active: { tenantIds: [...seen.keys()], readBefore: activeBefore },
    })
    const isDue = ({ tenantId, state, endedAt }: HomeToRead) =>
      state === undefined ||
      endedAt !== undefined ||
      state.readAt < readBefore ||
      (seen.get(tenantId) ?? 0) > state.readAt.getTime()
    for (const [region, due] of Map.groupBy(homes.filter(isDue), ({ regionId }) => regionId)) {
      if (reading.has(region)) continue
      const ended = readRegion(due, signal).finally(() => reading.delete(region))
      reading.set(region, ended)
    }
    return intervalMilliseconds
  }

  /** Reads one home at once, whether or not it is due. Errors are logged. */
  const readNow = async (tenantId: string, signal: AbortSignal): Promise<void> => {
    for (const home of await store.home(tenantId)) await read(home, signal)
  }

  /** Resolves when no reads of polls are in progress. */
  const idle = async (): Promise<void> => {
    await Promise.all(reading.values())
  }

  return { poll, idle, readNow }
}
