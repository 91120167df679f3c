// A deleted tenant is removed with all that hosts have of it, except what is on lost ones.
import t from 'tap'
import { EngineError } from '#control-plane/engines/engine-error.ts'
import type { HostState } from '#control-plane/placement/host-state.ts'
import type { ReconcileStore, Snapshot } from '#control-plane/reconcile/reconcile-store.ts'
import type { Reconciliation } from '#control-plane/reconcile/reconciliation.ts'
import type { Region } from '#control-plane/reconcile/region.ts'
import { removeTenant } from '#control-plane/reconcile/remove-tenant.ts'

const { signal } = new AbortController()
const now = new Date(0)
const tenant: Partial<Snapshot> = {
  id: 't_0123456789abcdef0123',
  regionId: 'north',
  isolation: 'database-per-tenant',
  placement: { postgres: 'a', runtime: 'a' },
  purgeAfter: now,
  generation: 2,
}

/** Removes the tenant while the engine misses hosts. @returns whether its record was removed */
async function isRemoved(missedHosts: readonly string[], states: Record<string, HostState> = {}): Promise<boolean> {
  let removed = false
  const store: Partial<ReconcileStore> = {
    recordPublished: () => Promise.resolve(),
    beginPurge: () => Promise.resolve(true),
    removeTenant: async () => void (removed = true),
    placements: { states: () => Promise.resolve(new Map(Object.entries(states))) } as Partial<
      ReconcileStore['placements']
    > as ReconcileStore['placements'],
  }
  const engine: Partial<NonNullable<Region['engine']>> = {
    hostIds: ['a', 'b'],
    // All hosts respond again after the removal.
    isDown: () => false,
    async remove() {
      if (missedHosts.length > 0)
        throw new EngineError('HOST_UNREACHABLE', 'A host may still have objects.', { missedHosts })
    },
  }
  const region: Partial<Region> = { engine: engine as Region['engine'], gatewayUrls: () => [], spansHosts: true }
  const run: Partial<Reconciliation> = {
    store: store as ReconcileStore,
    region: region as Region,
    clock: { now: () => now, timeout: () => signal } as Partial<Reconciliation['clock']> as Reconciliation['clock'],
    failpoint: () => Promise.resolve(),
    epoch: 1n,
  }
  await removeTenant(tenant as Snapshot, run as Reconciliation, signal)
  return removed
}

t.test('A tenant stays while a host that may have its services was missed, although that responds again', async (t) => {
  t.ok(await isRemoved([]))
  await t.rejects(isRemoved(['a']), { code: 'HOST_UNREACHABLE' })
  await t.rejects(isRemoved(['a', 'b'], { b: 'lost' }), { code: 'HOST_UNREACHABLE' })
  await t.rejects(isRemoved(['a'], { a: 'draining' }), { code: 'HOST_UNREACHABLE' })
})

t.test('A tenant is removed if the missed hosts are lost, or had none of its services', async (t) => {
  t.ok(await isRemoved(['a'], { a: 'lost' }))
  t.ok(await isRemoved(['b']))
})
