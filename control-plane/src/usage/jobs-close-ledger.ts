// The leader's job that closes hours and months of the ledger as soon as all their usage has arrived.
import { hourMilliseconds } from '@tenantry/contract'
import type { Clock } from '../platform/clock.ts'
import { nextMonth } from '../platform/months.ts'
import { repeat } from '../platform/repeat.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { startOfHour } from './hours.ts'
import type { LedgerClosing, MissingSources, TenantRange } from './store-closing.ts'

/** The minimum time between the end of an hour and its closing, within which a new source is known. */
export const settleMilliseconds = 10 * 60_000
/**
 * Counters are stored for this long after their hour was closed, so that late counts are distinct from repeats.
 */
const retentionMilliseconds = 24 * hourMilliseconds
const tenantBatchSize = 500
const intervalMilliseconds = 60_000

/** The open hours and months of the ledger, and the sources that it waits for. */
interface LedgerState {
  /** The end of the closed hours, except those that wait for a tenant's own home. */
  until: Date
  /** The end of the first past month that is not closed for all tenants. */
  openMonthEnd: Date | undefined
  missing: MissingSources
}

/** The dependencies of the job that closes the ledger's hours and months. */
export interface CloseLedgerDeps {
  closing: LedgerClosing
  /** Receives the state after each pass; undefined when this control plane is no longer the leader. */
  measure: (state: LedgerState | undefined) => void
  clock: Clock
  log: Pick<Log, 'warn'>
}

/** Creates the job, which runs while this control plane leads. */
export function closeLedger(deps: CloseLedgerDeps): (leadership: Leadership) => Promise<void> {
  return ({ epoch, lost }) =>
    repeat(
      {
        clock: deps.clock,
        work: async (signal) => {
          const now = deps.clock.now()
          const until = await closeAll(deps.closing, now, epoch, signal)
          deps.measure(await stateOf(deps.closing, now, until))
          return intervalMilliseconds
        },
        onError: (error) => deps.log.warn({ err: error }, 'The usage ledger could not be closed. The work is retried.'),
      },
      lost,
    ).finally(() => deps.measure(undefined))
}

async function stateOf(closing: LedgerClosing, now: Date, until: Date): Promise<LedgerState> {
  const [month, missing] = await Promise.all([closing.firstOpenMonth(), closing.missing(settledAt(now))])
  return { until, missing, openMonthEnd: month !== undefined && nextMonth(month) <= now ? nextMonth(month) : undefined }
}

function settledAt(now: Date): Date {
  return startOfHour(new Date(now.getTime() - settleMilliseconds))
}

/**
 * Closes hours, then months, then removes counters that are not needed any more, in steps that can be interrupted and
 * repeated.
 * @returns the end of the closed hours
 */
export async function closeAll(closing: LedgerClosing, now: Date, epoch: bigint, signal?: AbortSignal): Promise<Date> {
  const settled = settledAt(now)
  const complete = await closing.completeUntil()
  const until = complete === undefined || complete > settled ? settled : complete

  for (let after: string | undefined = ''; after !== undefined;) {
    signal?.throwIfAborted()
    after = await closing.closeHours(until, { after, limit: tenantBatchSize }, epoch)
  }
  const first = await closing.firstOpenMonth()
  for (let month = first; month !== undefined && nextMonth(month) <= until; month = nextMonth(month)) {
    for (const tenants of tenantRanges) {
      signal?.throwIfAborted()
      await closing.closeMonth(month, tenants, epoch)
    }
  }
  // Pushes that began before an earlier call chose these hours have ended by now.
  const keep = startOfHour(new Date(until.getTime() - retentionMilliseconds))
  if ((await closing.retainedFrom()) >= keep) return until
  for (const tenants of tenantRanges) {
    signal?.throwIfAborted()
    await closing.removePosted(tenants, epoch)
  }
  await closing.retainFrom(keep, epoch)
  return until
}

/** The ranges of tenants, by the first hexadecimal digit of their ids. */
const tenantRanges: readonly TenantRange[] = Array.from({ length: 16 }, (_, digit) => ({
  from: `t_${digit.toString(16)}`,
  to: `t_${(digit + 1).toString(17)}`,
}))
