// What the control database has of a tenant that moves between a single Postgres and a cluster of its own.
import t from 'tap'
import type { MoveJob } from '#control-plane/moves/move.ts'
import { createMoveLedger } from '#control-plane/moves/store-ledger.ts'
import { createReconcileStore } from '#control-plane/reconcile/store.ts'
import { requestRelocation } from '#control-plane/tenants/store-moves.ts'
import { oldImages, startPlane } from '#test/support/control-plane/plane.ts'

const plane = await startPlane(t)
const { epoch } = plane
const store = createReconcileStore(plane.database, plane.seal, plane.clock.now)
const ledger = createMoveLedger(plane.database, plane.clock.now)
const single = { isolation: 'database-per-tenant', images: oldImages } as const
const cluster = {
  isolation: 'cluster-per-tenant',
  images: { postgres: 'sha256:member', runtime: 'sha256:new' },
} as const

/** Requests the move of a tenant into a cluster. */
async function requestCluster(id: string): Promise<MoveJob> {
  const { operation } = await plane.database.$transaction((transaction) =>
    requestRelocation(id, { isolation: 'cluster-per-tenant' }, undefined, {
      transaction,
      audit: () => undefined,
      at: plane.clock.now(),
    }),
  )
  const { isolation: fromIsolation } = single
  const { isolation: toIsolation } = cluster
  const move = { region: plane.region().id, from: 'home', to: 'home', fromIsolation, toIsolation }
  t.match(await ledger.unsettled(), [{ operationId: operation.id, tenantId: id, ...move }])
  return {
    ...move,
    operationId: operation.id,
    tenantId: id,
    state: 'pending',
    step: undefined,
    attempts: 0,
  }
}

t.test('the switch exchanges the services of a move with those of the tenant', async (t) => {
  const id = await plane.addTenant()
  const job = await requestCluster(id)
  await ledger.begin(job, epoch)
  await ledger.step(job, 'prepare', {}, epoch)
  t.match(await store.snapshot(id), { ...single, isHeld: false }, 'a move that waits prevents no repair')
  await ledger.addServices(job, cluster, epoch)
  t.match(await store.snapshot(id), { ...single, moving: cluster, isHeld: true }, 'the move starts services')
  await ledger.step(job, 'copy', {}, epoch)
  t.match(await store.snapshot(id), { ...single, moving: cluster, isHeld: false }, 'the reconciler repairs both')
  await ledger.hold(job, epoch)
  t.match(await store.snapshot(id), { isHeld: true, routePhase: 'paused' })

  const generation = await ledger.recordSwitched(job, epoch)
  t.equal(generation, 2)
  t.equal(await ledger.recordSwitched(job, epoch), generation, 'a second call changes nothing')
  t.equal(await ledger.isMoved(job), true)
  await ledger.release(job, 'done', epoch)
  const former = { ...single, isEnding: true }
  t.match(await store.snapshot(id), { ...cluster, moving: former, isHeld: true, generation: 2, routePhase: 'ready' })
  await ledger.dropServices(job, 'cluster-per-tenant', epoch)
  t.match(await store.snapshot(id), { moving: former }, 'only services of the named model are removed')
  await ledger.dropServices(job, 'database-per-tenant', epoch)
  t.match(await store.snapshot(id), { ...cluster, moving: undefined, isHeld: false })
  await ledger.settle(job, undefined, epoch)
})

t.test('the services of a move that fails are removed, and nothing starts them again', async (t) => {
  const id = await plane.addTenant()
  const job = await requestCluster(id)
  await ledger.begin(job, epoch)
  await ledger.addServices(job, cluster, epoch)
  await ledger.step(job, 'catch up', {}, epoch)
  await ledger.endServices(job, 'database-per-tenant', epoch)
  t.match(await store.snapshot(id), { isHeld: false }, 'the own services are none of a move')
  await ledger.endServices(job, 'cluster-per-tenant', epoch)
  t.match(await store.snapshot(id), { ...single, moving: { ...cluster, isEnding: true }, isHeld: true })
  await ledger.dropServices(job, 'cluster-per-tenant', epoch)
  t.match(await store.snapshot(id), { ...single, moving: undefined, isHeld: false })
  await ledger.settle(job, 'The test has ended it.', epoch)
  await t.rejects(ledger.addServices(job, cluster, epoch), { message: 'The operation was superseded.' })
})

t.test('the hosts of services that are removed reserve nothing any more, and those of the others stay', async (t) => {
  const id = await plane.addTenant()
  const job = await requestCluster(id)
  const { placements } = store
  const assign = (services: readonly string[], host: string) =>
    placements.assign(
      id,
      services.map((service) => ({ service, memoryBytes: 100 })),
      Object.fromEntries(services.map((service) => [service, host])),
      epoch,
    )
  const single = { postgres: 'a', runtime: 'a' }
  const added = { 'postgres-1': 'b', 'router-1': 'b', 'runtime-2': 'b' }
  await assign(Object.keys(single), 'a')
  await ledger.begin(job, epoch)
  await ledger.addServices(job, cluster, epoch)
  await assign(Object.keys(added), 'b')
  t.match(await store.snapshot(id), { placement: { ...single, ...added }, moving: cluster })
  await ledger.dropServices(job, 'database-per-tenant', epoch)
  t.same((await placements.of(id)).placement, { ...single, ...added }, 'the own services are none of a move')
  await ledger.dropServices(job, 'cluster-per-tenant', epoch)
  t.same((await placements.of(id)).placement, single)
  t.equal((await placements.reserved(plane.region().id)).get('b'), undefined)
  await ledger.dropServices(job, 'cluster-per-tenant', epoch)
  await assign(Object.keys(added), 'b')

  await ledger.addServices(job, cluster, epoch)
  await ledger.recordSwitched(job, epoch)
  await ledger.dropServices(job, 'database-per-tenant', epoch)
  t.match(await store.snapshot(id), { isolation: 'cluster-per-tenant', moving: undefined })
  t.same((await placements.of(id)).placement, added)
  await ledger.settle(job, undefined, epoch)
})

t.test('an archive belongs to the Postgres that has written it', async (t) => {
  const id = await plane.addTenant({ archive_days: 7 })
  await t.rejects(requestCluster(id), {
    code: 'UNSUPPORTED_ISOLATION',
    message:
      'A tenant with an archive cannot move from database-per-tenant to cluster-per-tenant. Set "archive_days" to null before the move.',
  })
})
