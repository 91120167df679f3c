// What the reconciler says of a tenant, and what it leaves as others said it.
import t from 'tap'
import { conditionsOf, driftConditions } from '#control-plane/reconcile/conditions.ts'
import type { ReconcileStore, Snapshot } from '#control-plane/reconcile/reconcile-store.ts'
import { reconcileTenant, type TenantReconcilerDeps } from '#control-plane/reconcile/tenant-reconciler.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import type { Condition } from '#control-plane/tenants/tenant.ts'

const at = new Date('2026-03-01T12:00:00.000Z')
const said = { status: 'True' as const, reason: 'Observed', message: '' }
const disk: Condition = {
  type: 'Disk',
  status: 'False',
  reason: 'DiskExceeded',
  message: 'full',
  observed_at: '2026-03-01T11:00:00.000Z',
}

t.test('what was said of the disk stays, and all else is said anew', (t) => {
  const [home] = conditionsOf({ isolation: 'schema-per-tenant', conditions: [] }, at, { ...said, status: 'False' }, [
    'Home',
  ])
  if (home === undefined) throw new Error('no condition')
  const conditions = conditionsOf({ isolation: 'database-per-tenant', conditions: [home, disk] }, at, said)
  t.same(
    conditions.map(({ type, status }) => `${type} ${status}`),
    ['Services True', 'Home True', 'Database True', 'Runtime True', 'Route True', 'Disk False'],
  )
  t.same(conditions.at(-1), disk)
  t.same(
    driftConditions(conditions, [{ do: 'start container', container: 'c' }], at)?.filter(({ type }) => type === 'Disk'),
    [disk],
  )
  t.end()
})

t.test('a full disk is no work of the reconciler', async (t) => {
  const snapshot: Partial<Snapshot> = {
    id: 't_0123456789abcdef0123',
    isolation: 'database-per-tenant',
    desired: 'active',
    status: 'ready',
    routePhase: 'ready',
    generation: 3,
    observedGeneration: 3,
    homeVersion: 'v1',
    hasExpired: false,
    nextExpiry: undefined,
    operation: undefined,
    driftPolicy: 'repair',
    conditions: [disk],
  }
  const writes: string[] = []
  const store = new Proxy(
    {},
    { get: (_, name) => () => Promise.resolve(void writes.push(String(name))) },
  ) as ReconcileStore
  const deps = { store, clock: systemClock, homeVersion: 'v1', region: { engine: undefined } } as TenantReconcilerDeps
  t.same(await reconcileTenant(snapshot as Snapshot, deps, new AbortController().signal), {
    again: undefined,
    repaired: false,
  })
  t.same(writes, [])
})
