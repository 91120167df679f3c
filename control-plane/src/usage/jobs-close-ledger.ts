// Closes hours and months of the ledger as soon as all of them has come; what the leader does from time to time.
import { hourMilliseconds } from '@tenantry/contract'
import type { Clock } from '../platform/clock.ts'
import { nextMonth } from '../platform/months.ts'
import { repeat } from '../platform/repeat.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { startOfHour } from './hours.ts'
import type { LedgerClosing, MissingSources, TenantRange } from './ledger-closing.ts'

/** So long after its end an hour closes at the earliest: a source that was just started has been heard of by then. */
export const settleMilliseconds = 10 * 60_000
/** Counters are kept after their hour was closed, so that what a source sends against its own word is still told apart from a repeat. */
const retentionMilliseconds = 24 * hourMilliseconds
const tenantsAtOnce = 500
const intervalMilliseconds = 60_000

/** What is left open. */
interface LedgerState {
  /** Hours before it are closed, but those that wait for a tenant's own home. */
  until: Date
  /** End of the first month that is over and not closed for all tenants. */
  openMonthEnd: Date | undefined
  missing: MissingSources
}

/** What the job needs that closes the ledger's hours and months. */
export interface CloseLedgerDeps {
  closing: LedgerClosing
  /** Told after each pass; undefined when this control plane leads no longer. */
  measure: (state: LedgerState | undefined) => void
  clock: Clock
  log: Pick<Log, 'warn'>
}

/** Runs while this control plane leads. */
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
        onError: (error) => deps.log.warn({ err: error }, 'the usage ledger could not be closed; it is tried again'),
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
 * Closes hours, then months, then removes counters that are done with; each in steps that may be interrupted and done
 * again.
 * @returns until when hours are closed
 */
export async function closeAll(closing: LedgerClosing, now: Date, epoch: bigint, signal?: AbortSignal): Promise<Date> {
  const settled = settledAt(now)
  const complete = await closing.completeUntil()
  const until = complete === undefined || complete > settled ? settled : complete

  for (let after: string | undefined = ''; after !== undefined;) {
    signal?.throwIfAborted()
    after = await closing.closeHours(until, { after, limit: tenantsAtOnce }, epoch)
  }
  const first = await closing.firstOpenMonth()
  for (let month = first; month !== undefined && nextMonth(month) <= until; month = nextMonth(month)) {
    for (const tenants of tenantRanges) {
      signal?.throwIfAborted()
      await closing.closeMonth(month, tenants, epoch)
    }
  }
  // Hours that an earlier call named: pushes that had begun before it have ended by now.
  const keep = startOfHour(new Date(until.getTime() - retentionMilliseconds))
  if ((await closing.keptFrom()) >= keep) return until
  for (const tenants of tenantRanges) {
    signal?.throwIfAborted()
    await closing.removePosted(tenants, epoch)
  }
  await closing.keepFrom(keep, epoch)
  return until
}

/** By the first hexadecimal digit of their ids. */
const tenantRanges: readonly TenantRange[] = Array.from({ length: 16 }, (_, digit) => ({
  from: `t_${digit.toString(16)}`,
  to: `t_${(digit + 1).toString(17)}`,
}))
