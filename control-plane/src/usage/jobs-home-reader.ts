// Reads the homes of all tenants for the ledger: each once an hour, those that are used more often. The control plane asks; nobody
// can push.
import { hourMilliseconds } from '@tenantry/contract'
import PQueue from 'p-queue'
import type { Clock } from '../platform/clock.ts'
import { firstResponse, type Region, type CountersProbe, type RegionProbe } from '../reconcile/index.ts'
import { repeat } from '../platform/repeat.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { completeUntil, forGood, heldReading, readingOf, type HomeState } from './home-reading.ts'
import type { HomeReading, UsageLedger } from './usage-ledger.ts'
import type { Isolation } from '../stacks/index.ts'

/** A tenant with what was last read of its home. */
interface HomeToRead {
  tenantId: string
  regionId: string
  isolation: Isolation
  /** Its runtime is meant to answer. */
  isRunning: boolean
  /** Nothing counts from then on. */
  endedAt: Date | undefined
  state: HomeState | undefined
}

export interface HomeReadingStore {
  /**
   * Returns the tenants that are somebody's and have, or had, a home; those that are gone as long as there is a state of
   * them.
   * @param tenantId this one alone
   */
  homes(tenantId?: string): Promise<HomeToRead[]>
  save(state: HomeState): Promise<void>
  evict(tenantId: string): Promise<void>
}

/** What the job needs that reads into the ledger what homes store and which functions ran. */
export interface HomeReaderDeps {
  store: HomeReadingStore
  ledger: Pick<UsageLedger, 'recordHome'>
  regions: ReadonlyMap<string, Pick<Region, 'config' | 'runtimeUrls'>>
  probe: CountersProbe & Pick<RegionProbe, 'activity'>
  clock: Clock
  /** `held`: it was not asked, or did not answer, and stores what it stored. */
  measure: (outcome: 'read' | 'held' | 'failed') => void
  log: Pick<Log, 'warn'>
}

const intervalMilliseconds = 60_000
/** Between two readings of a tenant that is used. */
const activeMilliseconds = 5 * 60_000
/** A runtime that does not answer for so long keeps no hour open any more; what it tells later is corrected. */
const timeoutMilliseconds = 2 * hourMilliseconds
const readAtOnce = 8
const maxHours = 999

/** Runs while this control plane leads. */
export function readHomes(deps: HomeReaderDeps): (leadership: Leadership) => Promise<void> {
  const reader = createHomeReader(deps)
  const { clock, log } = deps
  return ({ lost }) =>
    repeat(
      {
        clock,
        work: reader.poll,
        onError: (error) => log.warn({ err: error }, 'homes could not be read for the ledger; it is tried again'),
      },
      lost,
    )
}

/** Makes the reader of tenants' homes: `look` reads those that are due, `readNow` one at once. */
export function createHomeReader({ store, ledger, regions, probe, clock, measure, log }: HomeReaderDeps) {
  const keep = async (readings: HomeReading[], state: HomeState): Promise<void> => {
    // The state comes last: what was recorded is recorded again after a crash, and does no harm.
    for (const reading of readings) await ledger.recordHome(reading)
    await store.save(state)
  }

  const hold = async (state: HomeState, until: Date): Promise<void> => {
    if (until <= state.readAt) return
    const held = heldReading(state, until)
    await keep([held.reading], held.state)
  }

  /** Nothing lies there any more; its hours wait for nobody. */
  const end = async (state: HomeState, endedAt: Date): Promise<void> => {
    await hold(state, endedAt)
    await ledger.recordHome({ tenantId: state.tenantId, boot: state.books, hours: [], completeUntil: forGood })
    await store.evict(state.tenantId)
  }

  const request = async (home: HomeToRead, at: Date, signal: AbortSignal) => {
    const region = regions.get(home.regionId)
    if (region === undefined) throw new Error(`the region ${home.regionId} is not configured`)
    const since =
      home.state === undefined
        ? maxHours
        : Math.ceil((at.getTime() - home.state.readAt.getTime()) / hourMilliseconds) + 1
    return firstResponse(region.runtimeUrls(home), (url) =>
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
      // What happens while it answers is for the next time.
      const at = clock.now()
      const counters = await request(home, at, signal)
      const { readings, state: next } = readingOf(state, counters, at)
      await keep(readings, next)
      measure('read')
    } catch (cause) {
      signal.throwIfAborted()
      measure(isRunning ? 'failed' : 'held')
      if (isRunning)
        log.warn({ tenant: home.tenantId, err: cause }, 'a home could not be read for the ledger; it is tried again')
      if (state !== undefined && (!isRunning || clock.now().getTime() - state.readAt.getTime() > timeoutMilliseconds))
        await hold(state, clock.now())
    }
  }

  /** When each tenant was last seen, as far as gateways answer. */
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

  /** Once: reads whoever is due. @returns after how many milliseconds to look again */
  const poll = async (signal: AbortSignal): Promise<number> => {
    const [homes, seen] = await Promise.all([store.homes(), lastSeen(signal)])
    const now = clock.now()
    const isDue = ({ tenantId, state, endedAt }: HomeToRead) => {
      if (state === undefined || endedAt !== undefined || completeUntil(state.readAt) < completeUntil(now)) return true
      return (
        now.getTime() - state.readAt.getTime() >= activeMilliseconds &&
        (seen.get(tenantId) ?? 0) > state.readAt.getTime()
      )
    }
    const queue = new PQueue({ concurrency: readAtOnce })
    const errors: unknown[] = []
    for (const home of homes.filter(isDue))
      void queue.add(() =>
        signal.aborted ? undefined : read(home, signal).catch((error: unknown) => errors.push(error)),
      )
    await queue.onIdle()
    if (errors.length > 0) throw errors[0]
    return intervalMilliseconds
  }

  /** One home at once, whether or not it is due. What goes wrong in reading it is logged. */
  const readNow = async (tenantId: string, signal: AbortSignal): Promise<void> => {
    for (const home of await store.homes(tenantId)) await read(home, signal)
  }

  return { poll, readNow }
}
