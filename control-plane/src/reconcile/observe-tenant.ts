// Waits until a region's runtimes and gateways report the tenant as specified: ready means observed.
import type { RoutePhase } from '@tenantry/contract'
import { observed } from './conditions.ts'
import { describeHealth } from './describe-health.ts'
import { NotReady, type NotReadyCode } from './not-ready.ts'
import type { Reconciliation } from './reconciliation.ts'
import type { Snapshot } from './reconcile-store.ts'
import { knownStructure, untilEvery } from './region-probe.ts'

/** Time limit for runtimes and gateways to report a change. */
export const observeMilliseconds = 10_000

type LastSeen = [code: NotReadyCode, message: string]

/**
 * Waits until every runtime has logged in and reports the tenant as healthy. Its home and database are healthy then,
 * too.
 * @throws NotReady with the last report of the runtime
 */
export async function observeRuntimes(
  snapshot: Snapshot,
  { region, probe, clock, observations }: Reconciliation,
  signal: AbortSignal,
  milliseconds: number,
): Promise<void> {
  let seen: LastSeen = ['RUNTIME_UNREACHABLE', 'The runtime does not respond.']
  // The home was checked just before, or was created in advance.
  const structure = knownStructure(snapshot)
  const agrees = async (url: string, signal: AbortSignal) => {
    const health = await probe.tenantHealth(url, snapshot.id, signal, structure).catch(() => null)
    if (health === undefined) seen = ['RUNTIME_UNHEALTHY', 'The runtime does not know the tenant.']
    else if (health !== null) seen = ['RUNTIME_UNHEALTHY', `The runtime ${describeHealth(health)}.`]
    // An aborted call reveals no more than the last response.
    else if (!signal.aborted) seen = ['RUNTIME_UNREACHABLE', 'The runtime does not respond.']
    return health != null && health.generation >= snapshot.generation && health.status === 'healthy'
  }
  const bounded = AbortSignal.any([signal, clock.timeout(milliseconds)])
  const everyAgrees = untilEvery(region.runtimeUrls(snapshot), agrees, bounded, clock)
  await observations.observe('Runtime', () => orNotReady(everyAgrees, () => seen))
  observations.note('Home', observed)
  observations.note('Database', observed)
}

/**
 * Waits until every gateway has the route and, for a ready tenant, a lease for its first requests.
 * @throws NotReady with the last state of the gateway
 */
export async function observeRoute(
  snapshot: Snapshot,
  phase: RoutePhase,
  { region, probe, clock, observations }: Reconciliation,
  signal: AbortSignal,
): Promise<void> {
  let seen: LastSeen = ['GATEWAY_UNREACHABLE', 'The gateway does not respond.']
  const agrees = async (url: string, signal: AbortSignal) => {
    const route = await probe.route(url, snapshot.id, signal).catch(() => null)
    if (route === null) {
      if (!signal.aborted) seen = ['GATEWAY_UNREACHABLE', 'The gateway does not respond.']
      return false
    }
    if (route === undefined) {
      seen = ['ROUTE_MISSING', 'The gateway has no route.']
      return false
    }
    if (route.generation < snapshot.generation || route.phase !== phase) {
      seen = ['ROUTE_OUTDATED', `The gateway has the route "${route.phase}" of generation ${route.generation}.`]
      return false
    }
    // While the control plane is down, a gateway serves a ready tenant from the lease that it holds by now.
    if (phase !== 'ready' || route.leased !== false) return true
    seen = ['LEASE_MISSING', "The gateway has no lease of the month's requests or no slots for connections yet."]
    return false
  }
  const bounded = AbortSignal.any([signal, clock.timeout(observeMilliseconds)])
  const everyAgrees = untilEvery(region.gatewayUrls(), agrees, bounded, clock)
  await observations.observe('Route', () => orNotReady(everyAgrees, () => seen))
}

/** Waits, and converts a failure to the last observation. @throws NotReady */
async function orNotReady(wait: Promise<void>, seen: () => LastSeen): Promise<void> {
  try {
    await wait
  } catch (cause) {
    const [code, message] = seen()
    throw new NotReady(code, message, { cause })
  }
}
