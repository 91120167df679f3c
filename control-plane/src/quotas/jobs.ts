// Warns operators of tenants that come near a quota: at 80 % and at 100 %, once for each tenant, resource and month.
import type { Clock } from '../platform/clock.ts'
import { monthBefore, monthText, nextMonth, startOfMonth } from '../platform/months.ts'
import { repeat } from '../platform/repeat.ts'
import type { OperatorEvent } from '../webhooks/index.ts'
import type { Leadership } from '../platform/leader.ts'
import type { Log } from '../platform/log.ts'

export const percents = [80, 100] as const
/** The lower of them. */
export const [warnedFrom] = percents

/** Of one tenant and resource; bytes, requests or connections. */
export interface QuotaState {
  tenantId: string
  resource: 'api_requests' | 'documents' | 'files' | 'realtime_connections'
  used: bigint
  limit: bigint
}

export interface QuotaWatchStore {
  /** Those at 80 % or more, but for what was told in this month already. `month` is its first instant, UTC. */
  unreported(month: Date): Promise<{ present: QuotaState; percent: (typeof percents)[number] }[]>
  /** @returns false when it was told meanwhile */
  report(event: OperatorEvent, once: string): Promise<boolean>
  /** Leases of months that ended before that time. */
  evict(before: Date): Promise<void>
}

interface QuotaWatchDeps {
  store: QuotaWatchStore
  clock: Clock
  log: Pick<Log, 'warn'>
}

const intervalMilliseconds = 60_000

/** Names the warning in the outbox. */
export function onceKey(tenantId: string, resource: QuotaState['resource'], percent: number, month: string): string {
  return `quota:${tenantId}:${resource}:${percent}:${month}`
}

/** Runs while this control plane leads. */
export function watchQuotas(deps: QuotaWatchDeps): (leadership: Leadership) => Promise<void> {
  const { clock, log } = deps
  return ({ lost }) =>
    repeat(
      {
        clock,
        work: createQuotaWatch(deps).poll,
        onError: (error) => log.warn({ err: error }, 'quotas could not be looked at; it is tried again'),
      },
      lost,
    )
}

export function createQuotaWatch({ store, clock }: QuotaWatchDeps) {
  return {
    /** Once. @returns after how many milliseconds to look again */
    poll: async (): Promise<number> => {
      const now = clock.now()
      const start = startOfMonth(now)
      const end = nextMonth(start)
      const month = monthText(start)
      for (const { present, percent } of await store.unreported(start)) {
        const { tenantId, resource, used, limit } = present
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
      // The month before is kept: gateways that come back late still report of it.
      await store.evict(monthBefore(start))
      return intervalMilliseconds
    },
  }
}
