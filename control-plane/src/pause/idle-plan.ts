// Finds the tenants that are not used, from the reports of the region's gateways. Pure.
import type { Activity } from '@tenantry/contract'
import type { RunningTenant } from '../tenants/index.ts'

/** The last report of one gateway. */
export interface WatchedGateway {
  /** The time of the gateway's first report, or of one that lost tenants. Its earlier reports are not relied on. */
  since: Date
  activity: Activity
}

/**
 * Records a gateway's next report. A gateway that no longer names a tenant may have evicted its record.
 * @param running the ids of tenants that still run
 */
export function updateGateway(
  before: WatchedGateway | undefined,
  activity: Activity,
  running: ReadonlySet<string>,
  at: Date,
): WatchedGateway {
  const hasEvicted =
    before === undefined ||
    Object.keys(before.activity.tenants).some((id) => running.has(id) && !(id in activity.tenants))
  return { since: hasEvicted ? at : before.since, activity }
}

/**
 * Returns the seconds after which the tenant is paused; 0 is never. The region's default does not apply to a cluster, whose wake
 * takes longer than requests may wait.
 */
export function pauseAfter({ isolation, pauseAfterSeconds }: RunningTenant, regionSeconds: number): number {
  return pauseAfterSeconds ?? (isolation === 'cluster-per-tenant' ? 0 : regionSeconds)
}

/**
 * Returns the tenants to pause.
 * @param gateways all gateways of the region, so that no use is missed
 */
export function idleTenants(
  running: readonly RunningTenant[],
  gateways: readonly WatchedGateway[],
  regionSeconds: number,
  now: Date,
): RunningTenant[] {
  if (gateways.length === 0) return []
  return running.filter((tenant) => {
    const seconds = pauseAfter(tenant, regionSeconds)
    const used = lastUse(tenant, gateways)
    return seconds > 0 && used !== undefined && now.getTime() - used >= seconds * 1000
  })
}

/** Returns the time of the last use in milliseconds since 1970; undefined while the tenant is in use. */
function lastUse({ id, updatedAt }: RunningTenant, gateways: readonly WatchedGateway[]): number | undefined {
  const uses = gateways.map(({ since, activity }) => {
    const seen = activity.tenants[id]
    // Requests before the start of the gateway are unknown.
    if (seen === undefined) return Math.max(since.getTime(), Date.parse(activity.since))
    return seen.open > 0 ? Number.NaN : Date.parse(seen.last_request_at)
  })
  const last = Math.max(updatedAt.getTime(), ...uses)
  return Number.isNaN(last) ? undefined : last
}
