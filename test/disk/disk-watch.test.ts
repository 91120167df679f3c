// The disk watch on a real control database: which conditions it writes, and how a suspended tenant resumes.
import t from 'tap'
import { createDiskWatch } from '#control-plane/disk/jobs.ts'
import { createDiskWatchStore } from '#control-plane/disk/store.ts'
import { createReconcileStore } from '#control-plane/reconcile/store.ts'
import { isRejected, startPlane } from '#test/support/control-plane/plane.ts'

const plane = await startPlane(t)
const { signal } = new AbortController()
const store = createDiskWatchStore(plane.database, plane.clock.now)
const reconcileStore = createReconcileStore(plane.database, plane.seal, plane.clock.now)

/** More bytes than any plan allows. */
const much = 10 ** 13
const home = { type: 'Home', status: 'True', reason: 'Observed', message: '', observed_at: '2026-03-01T12:00:00.000Z' }

/** Creates a watch with the bytes of each tenant's volumes; undefined stands for an engine that does not respond. */
const watch = (bytes: Record<string, number> | undefined) => {
  let requests = 0
  const volumeBytes = (id: string) => {
    requests++
    if (bytes === undefined) return Promise.reject(new Error('the engine does not respond'))
    return Promise.resolve({ data: bytes[id] ?? 0, files: 1 })
  }
  const { poll } = createDiskWatch(
    plane.region().id,
    { volumeBytes },
    { store, clock: plane.clock, log: plane.log },
    plane.epoch,
  )
  return { poll: () => poll(signal), requests: () => requests }
}

const seen = async (id: string) => {
  const { desired, suspend_reason: reason, conditions, generation } = await plane.tenant(id)
  return {
    desired,
    reason,
    generation,
    conditions: (conditions as { type: string; reason: string }[]).map(
      (condition) => `${condition.type} ${condition.reason}`,
    ),
  }
}

t.beforeEach(() => plane.nextRegion())

t.test('A tenant that exceeds its disk limit is suspended, with an operation and a reason', async (t) => {
  const [large, small] = [
    await plane.addTenant({ conditions: JSON.stringify([home]) }),
    await plane.addTenant({ conditions: JSON.stringify([home]) }),
  ]
  const before = (await plane.tenant(small))['updated_at']
  await watch({ [large]: much, [small]: 1000 }).poll()
  t.same(await seen(large), {
    desired: 'suspended',
    reason: 'it takes more disk than its plan allows',
    generation: 2,
    conditions: ['Disk DiskExceeded', 'Home Observed'],
  })
  t.match(await plane.sql('select kind, state, generation from operations where tenant_id = $1', [large]), [
    { kind: 'suspend', state: 'pending', generation: 2 },
  ])
  t.same(await seen(small), { desired: 'active', reason: null, generation: 1, conditions: ['Home Observed'] })
  t.same((await plane.tenant(small))['updated_at'], before)
  t.match(plane.warnings.at(-1), { details: { tenant: large }, message: /suspended/ })
})

t.test('An operator resumes the tenant, which then has ten minutes to free space', async (t) => {
  const id = await plane.addTenant()
  const held = { [id]: much }
  const { poll } = watch(held)
  await poll()
  await plane.settle()
  plane.clock.pass(3600)
  await plane.request(id, 'resume', { desired: 'active', suspend_reason: null })
  await plane.settle()
  await poll()
  t.match(await seen(id), { desired: 'active', conditions: ['Disk DiskExceeded'] })
  plane.clock.pass(601)
  await poll()
  t.match(await seen(id), { desired: 'suspended' }, 'no space was freed')
  await plane.request(id, 'resume', { desired: 'active', suspend_reason: null })
  await plane.settle()
  held[id] = 5
  plane.clock.pass(601)
  await poll()
  t.same(await seen(id), { desired: 'active', reason: null, generation: 5, conditions: [] }, 'the space was freed')
})

t.test('A tenant that is copied or stopped only gets the condition', async (t) => {
  const [copied, paused] = [await plane.addTenant(), await plane.addTenant({ desired: 'paused', status: 'paused' })]
  await plane.sql(
    "insert into operations (id, tenant_id, kind, generation, created_at) values (gen_random_uuid(), $1, 'restore', 0, now())",
    [copied],
  )
  const { poll } = watch({ [copied]: much, [paused]: much })
  await poll()
  t.match(await seen(copied), { desired: 'active', conditions: ['Disk DiskExceeded'] })
  t.match(await seen(paused), { desired: 'paused', conditions: ['Disk DiskExceeded'] })
  await plane.sql("update operations set state = 'failed' where tenant_id = $1", [copied])
  await poll()
  t.match(await seen(copied), { desired: 'suspended' })
})

t.test('Tenants that share services, have none yet or are being deleted are not measured', async (t) => {
  await plane.addTenant({ isolation: 'schema-per-tenant' })
  for (const desired of ['deleted', 'warm', 'restoring'])
    await plane.addTenant({ desired, ...(desired === 'deleted' ? { purge_after: plane.clock.now() } : {}) })
  const { poll, requests } = watch({})
  await poll()
  t.equal(requests(), 0)
  const id = await plane.addTenant()
  await poll()
  t.equal(requests(), 1)
  t.same((await seen(id)).conditions, [])
})

t.test('A measurement is not written after another request, or by a former leader', async (t) => {
  const id = await plane.addTenant()
  await plane.request(id, 'update', {})
  t.equal(await store.suspend(id, 1, 'old', plane.epoch), false)
  t.equal(await isRejected(store.suspend(id, 2, 'old', plane.epoch + 1n)), true)
  t.equal(await isRejected(store.reportDisk(id, undefined, plane.epoch + 1n)), true)
  await t.rejects(watch(undefined).poll())
  t.same(await seen(id), { desired: 'active', reason: null, generation: 2, conditions: [] })
})

t.test('The reconciler reads the condition', async (t) => {
  const id = await plane.addTenant()
  await watch({ [id]: much }).poll()
  t.match((await reconcileStore.snapshot(id))?.conditions, [{ type: 'Disk', status: 'False', reason: 'DiskExceeded' }])
})
