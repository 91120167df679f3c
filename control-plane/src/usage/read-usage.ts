// A month's usage: counters from the ledger, what is stored from the tenant's runtime, what its services take from their engine.
import { sightOf, type SightDeps, type TenantSight } from '../health/tenant-sight.ts'
import type { PlanStore } from '../plans/plan.ts'
import type { RegionProbe } from '../reconcile/region-probe.ts'
import { componentUsage } from './component-usage.ts'
import type { UsageLedger, UsageSums } from './usage-ledger.ts'
import type { UsageReader } from './usage-reader.ts'

/** A gateway pushes each second; an hour after a month's end nothing of it can still be under way. */
const settleMilliseconds = 3_600_000

const runtimeMilliseconds = 2_000

export interface UsageReaderDeps extends SightDeps {
  ledger: UsageLedger
  plans: PlanStore
  probe: Pick<RegionProbe, 'tenantUsage'>
}

export function createUsageReader(deps: UsageReaderDeps): UsageReader {
  const { ledger, plans, clock } = deps
  return {
    async read(tenant, month) {
      const end = new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 1))
      const now = clock.now()
      const sight = now < end ? await sightOf(deps, tenant) : undefined
      const [sums, allPlans, stored, components] = await Promise.all([
        ledger.sums(tenant.id, month, end),
        plans.list(),
        storedNow(deps, sight),
        tenant.isolation === 'schema-per-tenant' ? undefined : componentUsage(clock, sight),
      ])
      const plan = allPlans.find(({ id }) => id === tenant.plan)
      const peaks = sums.connectionPeaks
      return {
        tenant_id: tenant.id,
        month: month.toISOString().slice(0, 7),
        incomplete: now.getTime() < end.getTime() + settleMilliseconds,
        period: { start: month.toISOString(), end: end.toISOString() },
        resources: {
          api_requests: {
            count: sums.requests.reduce((sum, { count }) => sum + count, 0),
            limit: plan?.requestsPerMonth ?? null,
            by_group: sumBy(sums, 'group'),
            by_method: sumBy(sums, 'method'),
            by_status: sumBy(sums, 'statusClass'),
          },
          storage: {
            documents_bytes: stored?.document_bytes ?? null,
            documents_limit: plan?.documentBytes ?? null,
            files_bytes: stored?.file_bytes ?? null,
            files_count: stored?.file_count ?? null,
            files_limit: plan?.fileBytes ?? null,
          },
          egress: { bytes: sums.egressBytes },
          realtime_connections: {
            peak: Math.max(0, ...peaks),
            average: peaks.length === 0 ? 0 : peaks.reduce((sum, peak) => sum + peak, 0) / peaks.length,
            limit: plan?.realtimeConnections ?? null,
          },
          functions: { invocations: stored?.function_invocations ?? null },
        },
        ...(components === undefined ? {} : { components }),
      }
    },
  }
}

/** Undefined when no runtime can say. */
async function storedNow({ probe, clock }: UsageReaderDeps, sight: TenantSight | undefined) {
  if (sight === undefined) return undefined
  const { snapshot, region } = sight
  const signal = clock.timeout(runtimeMilliseconds)
  const answers = region.runtimeUrls(snapshot).map(async (url) => {
    const usage = await probe.tenantUsage(url, snapshot.id, signal)
    if (usage === undefined) throw new Error('the runtime does not know the tenant')
    return usage
  })
  return Promise.any(answers).catch(() => undefined)
}

function sumBy({ requests }: UsageSums, part: 'group' | 'method' | 'statusClass'): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const request of requests) sums[request[part]] = (sums[request[part]] ?? 0) + request.count
  return sums
}
