// Which tenants nobody uses, from what the region's gateways say. Pure.
import type { Activity } from '@tenantry/contract'
import type { RunningTenant } from '../tenants/index.ts'

/** What is known of one gateway. */
export interface WatchedGateway {
  /** When it was asked first, or told less than before: what it may have known of earlier is not counted on. */
  since: Date
  activity: Activity
}

/**
 * A gateway's next answer. It may have forgotten somebody: it no longer names a tenant that it had named.
 * @param running ids of tenants that are still there
 */
export function watched(
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

/** Seconds after which the tenant is paused; 0 is never. */
export function pauseAfter({ pauseAfterSeconds }: RunningTenant, regionSeconds: number): number {
  return pauseAfterSeconds ?? regionSeconds
}

/** @param gateways all of the region: what one of them does not know, nobody knows */
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

/** Milliseconds since 1970; undefined while it is in use. */
function lastUse({ id, updatedAt }: RunningTenant, gateways: readonly WatchedGateway[]): number | undefined {
  const uses = gateways.map(({ since, activity }) => {
    const seen = activity.tenants[id]
    // Nobody knows who came before the gateway's start.
    if (seen === undefined) return Math.max(since.getTime(), Date.parse(activity.since))
    return seen.open > 0 ? Number.NaN : Date.parse(seen.last_request_at)
  })
  const last = Math.max(updatedAt.getTime(), ...uses)
  return Number.isNaN(last) ? undefined : last
}
