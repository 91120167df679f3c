// Waits until a region's runtimes and gateways show what was asked for of a tenant: ready means observed.
import type { RoutePhase } from '@tenantry/contract'
import { observed } from './conditions.ts'
import { healthInWords } from './health-in-words.ts'
import { NotReady, type NotReadyCode } from './not-ready.ts'
import type { Reconciliation } from './reconciliation.ts'
import type { Snapshot } from './reconcile-store.ts'
import { untilEvery } from './region-probe.ts'

/** How long runtimes and gateways may take to show a change. */
export const observeMilliseconds = 10_000

type LastSeen = [code: NotReadyCode, message: string]

/**
 * Waits until every runtime has logged in and found all well: its home and its database are well then, too.
 * @throws NotReady with what the runtime said last
 */
export async function observeRuntimes(
  snapshot: Snapshot,
  { region, probe, clock, observations }: Reconciliation,
  signal: AbortSignal,
  milliseconds: number,
): Promise<void> {
  let seen: LastSeen = ['RUNTIME_UNREACHABLE', 'the runtime does not answer']
  const agrees = async (url: string, signal: AbortSignal) => {
    const health = await probe.tenantHealth(url, snapshot.id, signal).catch(() => null)
    if (health === undefined) seen = ['RUNTIME_UNHEALTHY', 'the runtime does not know the tenant']
    else if (health !== null) seen = ['RUNTIME_UNHEALTHY', `the runtime ${healthInWords(health)}`]
    // One that was cut short tells nothing that the last answer did not.
    else if (!signal.aborted) seen = ['RUNTIME_UNREACHABLE', 'the runtime does not answer']
    return health != null && health.generation >= snapshot.generation && health.status === 'healthy'
  }
  const bounded = AbortSignal.any([signal, clock.timeout(milliseconds)])
  const everyAgrees = untilEvery(region.runtimeUrls(snapshot), agrees, bounded, clock)
  await observations.of('Runtime', () => orNotReady(everyAgrees, () => seen))
  observations.note('Home', observed)
  observations.note('Database', observed)
}

/**
 * Waits until every gateway shows the route and, of a tenant that is ready, holds what it serves the first requests from.
 * @throws NotReady with what the gateway showed last
 */
export async function observeRoute(
  snapshot: Snapshot,
  phase: RoutePhase,
  { region, probe, clock, observations }: Reconciliation,
  signal: AbortSignal,
): Promise<void> {
  let seen: LastSeen = ['GATEWAY_UNREACHABLE', 'the gateway does not answer']
  const agrees = async (url: string, signal: AbortSignal) => {
    const route = await probe.route(url, snapshot.id, signal).catch(() => null)
    if (route === null) {
      if (!signal.aborted) seen = ['GATEWAY_UNREACHABLE', 'the gateway does not answer']
      return false
    }
    if (route === undefined) {
      seen = ['ROUTE_MISSING', 'the gateway has no route']
      return false
    }
    if (route.generation < snapshot.generation || route.phase !== phase) {
      seen = ['ROUTE_OUTDATED', `the gateway has the route ${route.phase} at generation ${route.generation}`]
      return false
    }
    // A tenant that is ready is served while the control plane is away: from a lease that the gateway has by now.
    if (phase !== 'ready' || route.leased !== false) return true
    seen = ['LEASE_MISSING', "the gateway has no lease of the month's requests or no slots for connections yet"]
    return false
  }
  const bounded = AbortSignal.any([signal, clock.timeout(observeMilliseconds)])
  const everyAgrees = untilEvery(region.config.gateway_internal_urls, agrees, bounded, clock)
  await observations.of('Route', () => orNotReady(everyAgrees, () => seen))
}

/** Ends with the wait; one that fails says what was seen last. @throws NotReady */
async function orNotReady(wait: Promise<void>, seen: () => LastSeen): Promise<void> {
  try {
    await wait
  } catch (cause) {
    const [code, message] = seen()
    throw new NotReady(code, message, { cause })
  }
}
