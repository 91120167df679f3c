// Warns operators of tenants near a quota: at 80 % and at 100 %, once for each tenant, resource and month.
import type { Clock } from '../platform/clock.ts'
import { monthBefore, monthText, nextMonth, startOfMonth } from '../platform/months.ts'
import { repeat } from '../platform/repeat.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'
import { onceKey } from './quota-warning.ts'
import type { QuotaWatchStore } from './store-watch.ts'

interface QuotaWatchDeps {
  store: QuotaWatchStore
  clock: Clock
  log: Pick<Log, 'warn'>
}

const intervalMilliseconds = 60_000

/** Creates the job, which runs while this control plane leads. */
export function watchQuotas(deps: QuotaWatchDeps): (leadership: Leadership) => Promise<void> {
  const { clock, log } = deps
  return ({ lost }) =>
    repeat(
      {
        clock,
        work: createQuotaWatch(deps).poll,
        onError: (error) => log.warn({ err: error }, 'The quotas could not be checked. The check is retried.'),
      },
      lost,
    )
}

export function createQuotaWatch({ store, clock }: QuotaWatchDeps) {
  return {
    /**
     * Polls once.
     * @returns the milliseconds until the next poll
     */
    poll: async (): Promise<number> => {
      const now = clock.now()
      const start = startOfMonth(now)
      const end = nextMonth(start)
      const month = monthText(start)
      await store.refresh(start)
      for (const { quota, percent } of await store.unreported(start)) {
        const { tenantId, resource, used, limit } = quota
        const isMonthly = resource === 'api_requests'
        const data = {
          tenant_id: tenantId,
          resource,
          percent,
          used: String(used),
          limit: String(limit),
          month: isMonthly ? month : null,
          resets_at: isMonthly ? end.toISOString() : null,
        }
        await store.report(
          { type: percent === 80 ? 'quota.warning' : 'quota.reached', tenantId, data },
          onceKey(tenantId, resource, percent, month),
        )
      }
      // The previous month is retained, because gateways that were cut off still report it.
      await store.evict(monthBefore(start))
      return intervalMilliseconds
    },
  }
}
