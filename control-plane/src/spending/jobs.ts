// Compares tenants' spending limits with their upcoming invoices, warns operators at 80 % and 100 %, and makes gateways reject
// the requests of tenants that have reached their limit.
import type { Billing } from '../billing/index.ts'
import type { Clock } from '../platform/clock.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { startOfMonth } from '../platform/months.ts'
import { repeat } from '../platform/repeat.ts'
import { checkSpending } from './spending-limit.ts'
import type { LimitCheck, SpendingStore, StoredLimit } from './store.ts'

/** The dependencies of the check of spending limits. */
export interface SpendingDeps {
  store: Pick<SpendingStore, 'page' | 'recordTotals' | 'apply'>
  billing: Pick<Billing, 'config' | 'upcomingTotals'>
  clock: Clock
  log: Pick<Log, 'warn'>
}

const intervalMilliseconds = 60_000
/** The rest between two rounds, relative to the duration of a round, so that previews do not occupy the control plane. */
const restFactor = 10
/** Tenants whose previews are read together. */
const batch = 100

/** Creates the job, which runs while this control plane leads. */
export function watchSpending(deps: SpendingDeps): (leadership: Leadership) => Promise<void> {
  return ({ epoch, lost }) =>
    repeat(
      {
        clock: deps.clock,
        work: createSpendingWatch(deps, epoch).poll,
        onError: (error) =>
          deps.log.warn({ err: error }, 'The spending limits could not be checked. The check is retried.'),
      },
      lost,
    )
}

export function createSpendingWatch({ store, billing, clock, log }: SpendingDeps, epoch: bigint) {
  const checked = async (limits: readonly StoredLimit[]): Promise<(LimitCheck & { limit: StoredLimit })[]> => {
    const at = clock.now()
    // A limit in a former currency of the price file is not compared.
    const current = limits.filter(({ currency }) => currency === billing.config?.currency)
    if (current.length === 0) return []
    const totals = await billing.upcomingTotals(
      current.map(({ tenantId }) => tenantId),
      at,
    )
    return current.flatMap((limit) => {
      const total = totals.get(limit.tenantId)
      if (total === undefined) return []
      if (!('totalMicro' in total)) {
        log.warn(
          { err: total.error, tenant: limit.tenantId },
          "A tenant's upcoming invoice could not be computed, so its spending limit was not checked.",
        )
        return []
      }
      return [{ limit, check: checkSpending(limit, total.totalMicro, startOfMonth(at), at) }]
    })
  }

  return {
    /**
     * Polls once.
     * @returns the milliseconds until the next poll
     */
    poll: async (signal: AbortSignal): Promise<number> => {
      const begin = clock.now().getTime()
      for (let after = ''; ;) {
        signal.throwIfAborted()
        const limits = await store.page(after, batch)
        const last = limits.at(-1)
        if (last === undefined) break
        const checks = await checked(limits)
        const quiet = checks.filter((one) => !isChanged(one))
        if (quiet.length > 0) await store.recordTotals(quiet, epoch)
        for (const one of checks) if (isChanged(one)) await store.apply(one, epoch)
        after = last.tenantId
      }
      return Math.max(intervalMilliseconds, (clock.now().getTime() - begin) * restFactor)
    },
  }
}

/** Whether a check changes the tenant's condition, or what gateways do. */
function isChanged({ limit: { last, condition }, check }: LimitCheck & { limit: StoredLimit }): boolean {
  return (
    condition?.message !== check.condition?.message ||
    condition?.reason !== check.condition?.reason ||
    last?.rejectsUntil?.getTime() !== check.rejectsUntil?.getTime()
  )
}
