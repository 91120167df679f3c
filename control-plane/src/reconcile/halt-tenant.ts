// Halts a suspended or paused tenant: ends its route, then stops the services that run for it alone.
import type { RoutePhase } from '@tenantry/contract'
import { halted } from './conditions.ts'
import { convergeServices } from './converge-services.ts'
import { ensureHome, ensurePassword, ensureServicePasswords } from './ensure-home.ts'
import { observeRoute } from './observe-tenant.ts'
import { recordReached } from './record-outcome.ts'
import type { Reconciliation } from './reconciliation.ts'
import type { Snapshot } from './reconcile-store.ts'
import { hasCluster, isDedicated } from './region.ts'

export async function haltTenant(snapshot: Snapshot, run: Reconciliation, signal: AbortSignal): Promise<void> {
  const { store, failpoint, epoch, observations } = run
  const phase: RoutePhase = snapshot.desired === 'paused' ? 'paused' : 'suspended'
  if (!isDedicated(snapshot)) {
    await ensureHome(snapshot, run, signal)
    await ensurePassword(snapshot, run)
    // No client waits for the runtimes, which receive the passwords with this generation.
    await ensureServicePasswords(snapshot, run)
  }
  await failpoint('halt.before')
  const homeVersion = isDedicated(snapshot) ? (snapshot.homeVersion ?? null) : run.homeVersion
  await store.recordPublished(snapshot.id, { homeVersion, routePhase: phase }, epoch)
  await observeRoute(snapshot, phase, run, signal)
  await failpoint('halt.unrouted')
  if (!isDedicated(snapshot)) await run.region.home(snapshot).setSqlLogin(snapshot.id, false)
  await convergeServices(snapshot, run, signal)
  await failpoint('halt.stopped')
  observations.note('Runtime', halted)
  if (isDedicated(snapshot)) for (const part of ['Home', 'Database'] as const) observations.note(part, halted)
  if (hasCluster(snapshot)) for (const part of ['Quorum', 'Replicating'] as const) observations.note(part, halted)
  await recordReached(snapshot, run)
}
