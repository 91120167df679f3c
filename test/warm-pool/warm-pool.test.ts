// A region's warm pool on a real control database: filled, claimed, repaired, renewed and emptied, by the leader alone.
import t from 'tap'
import { createWarmPool } from '#control-plane/warm-pool/jobs.ts'
import { createReconcileStore } from '#control-plane/reconcile/store.ts'
import { secretKinds } from '#control-plane/tenants/tenant.ts'
import { isRejected, oldImages, startPlane } from '#test/support/control-plane/plane.ts'

const plane = await startPlane(t)
const { signal } = new AbortController()

const clusterImages = { postgres: 'sha256:member', runtime: 'sha256:runtime' }
const settingsOf = {
  'database-per-tenant': (size: number) => ({ warm_stacks: size }),
  'cluster-per-tenant': (size: number) => ({
    clusters: { member_image: 'member:1', etcd_image: 'etcd:1', warm_stacks: size },
  }),
}

const pool = (
  size: number,
  images: (signal: AbortSignal, isolation?: string) => Promise<typeof oldImages> = async () => oldImages,
  isolation: keyof typeof settingsOf = 'database-per-tenant',
) => {
  const counts: Record<string, number>[] = []
  const { poll } = createWarmPool(
    { config: plane.region(settingsOf[isolation](size)), images },
    isolation,
    { ...plane, regions: new Map(), measure: (_region, _isolation, now) => void counts.push(now) },
    plane.epoch,
  )
  return { counts, poll: () => poll(signal) }
}

const states = async () =>
  (
    await plane.sql('select desired, status from tenants where region_id = $1 order by created_at', [plane.region().id])
  ).map(({ desired, status }) => `${String(desired)} ${String(status)}`)

const fill = async (size: number) => {
  const { poll } = pool(size)
  for (let made = 0; made < size; made += 2) {
    await poll()
    await plane.settle()
  }
}

t.beforeEach(() => plane.nextRegion())

t.test('A pool fills up, two at a time, with complete tenants that no operation names', async (t) => {
  const { poll, counts } = pool(3)
  await poll()
  t.same(await states(), ['warm pending', 'warm pending'])
  await poll()
  t.same((await states()).length, 2, 'no third one while two are being created')
  await plane.settle()
  await poll()
  await plane.settle()
  await poll()
  t.same(await states(), ['warm warm', 'warm warm', 'warm warm'])
  t.same(counts.at(-1), { pending: 0, warm: 3, failed: 0, leaving: 0 }, 'the metrics show the same')

  const rows = await plane.sql('select * from tenants where region_id = $1', [plane.region().id])
  const reconcileStore = createReconcileStore(plane.database, plane.seal, plane.clock.now)
  for (const row of rows) {
    t.match(row, {
      name: `warm-${String(row['id']).slice(2)}`,
      plan_id: 'Pro',
      isolation: 'database-per-tenant',
      shared_database_id: null,
    })
    const snapshot = await reconcileStore.snapshot(String(row['id']))
    for (const kind of secretKinds) t.match(snapshot?.secrets[kind], [/^.{40,}$/], `${kind} can be opened`)
    t.same(await plane.sql('select 1 from operations where tenant_id = $1', [row['id']]), [], 'no operation names it')
  }
})

t.test('A region has a pool of databases and one of clusters, each with its own size and images', async (t) => {
  const imagesOf = async (_signal: AbortSignal, isolation?: string) =>
    isolation === 'cluster-per-tenant' ? clusterImages : oldImages
  const [databases, clusters] = [pool(2, imagesOf), pool(1, imagesOf, 'cluster-per-tenant')]
  const kinds = async () =>
    (
      await plane.sql('select plan_id, isolation, desired from tenants where region_id = $1 order by isolation, id', [
        plane.region().id,
      ])
    ).map((row) => Object.values(row).join(' '))
  await clusters.poll()
  t.same(await kinds(), ['Enterprise cluster-per-tenant warm'])
  await plane.sql(
    `update tenants set postgres_image = $2, runtime_image = $3 where region_id = $1 and isolation = 'cluster-per-tenant'`,
    [plane.region().id, clusterImages.postgres, clusterImages.runtime],
  )
  await plane.settle()
  await databases.poll()
  await plane.settle()
  for (const { poll } of [clusters, databases, clusters]) await poll()
  const filled = ['Enterprise cluster-per-tenant warm', 'Pro database-per-tenant warm', 'Pro database-per-tenant warm']
  t.same(await kinds(), filled, 'neither pool counts, renews or removes the stacks of the other')
  t.same(clusters.counts.at(-1), { pending: 0, warm: 1, failed: 0, leaving: 0 })
  await pool(0, imagesOf, 'cluster-per-tenant').poll()
  t.same(await kinds(), ['Enterprise cluster-per-tenant deleted', ...filled.slice(1)])
})

t.test('A pool of homes needs no images, and each of its homes has a slot in a shared database', async (t) => {
  const { poll } = createWarmPool(
    { config: { ...plane.region(), warm_homes: 2 }, images: () => Promise.reject(new Error('the engine is gone')) },
    'schema-per-tenant',
    { ...plane, regions: new Map(), measure: () => undefined },
    plane.epoch,
  )
  await poll(signal)
  const rows = await plane.sql(
    `select plan_id, isolation, desired, shared_databases.name as database
     from tenants join shared_databases on shared_databases.id = shared_database_id where tenants.region_id = $1`,
    [plane.region().id],
  )
  const home = { plan_id: 'Free', isolation: 'schema-per-tenant', desired: 'warm', database: 'tenantry_homes_1' }
  t.same(rows, [home, home])
})

/** Gives one of the pool to a client. @returns its ID */
const claim = async () => {
  const [claimed] = await plane.sql(
    "select id from tenants where region_id = $1 and desired = 'warm' and status = 'warm'",
    [plane.region().id],
  )
  const id = String(claimed?.['id'])
  await plane.request(id, 'create', {
    desired: 'active',
    name: `claimed-${id.slice(2)}`,
    created_at: plane.clock.now(),
  })
  return id
}
const makesNone = ['active warm', 'warm warm']
const makesOne = ['active warm', 'warm pending', 'warm warm']

t.test('After a create has ended the pool fills up again, and the claimed tenant is not changed', async (t) => {
  await fill(2)
  const id = await claim()
  const { poll } = pool(2)
  await poll()
  t.same((await states()).toSorted(), makesNone, 'the create comes first')
  await plane.sql("update operations set state = 'succeeded' where tenant_id = $1", [id])
  await poll()
  t.same((await states()).toSorted(), makesOne)
  t.equal(await plane.store.removeWarm(id, plane.epoch), false, 'a claimed one is not removed')
  t.same((await plane.tenant(id))['desired'], 'active')
})

t.test('A pool waits for creates for ten seconds at most', async (t) => {
  await fill(2)
  await claim()
  const { poll } = pool(2)
  await poll()
  plane.clock.pass(9.9)
  await poll()
  t.same((await states()).toSorted(), makesNone)
  plane.clock.pass(0.2)
  await poll()
  t.same((await states()).toSorted(), makesOne)
})

t.test('An empty pool does not wait for creates', async (t) => {
  await fill(1)
  await claim()
  await pool(1).poll()
  t.same(await states(), ['active warm', 'warm pending'])
})

t.test('A pool does not wait for creates of other regions', async (t) => {
  await fill(2)
  await claim()
  await plane.nextRegion()
  await fill(1)
  await pool(2).poll()
  t.same(await states(), ['warm warm', 'warm pending'])
})

t.test('A failed tenant is removed at once, and another is created after a growing delay', async (t) => {
  const { poll } = pool(1)
  const fail = () =>
    plane.sql("update tenants set status = 'failed' where region_id = $1 and desired = 'warm'", [plane.region().id])
  await poll()
  for (const delay of [5, 10, 20, 40, 80, 160, 300, 300]) {
    await fail()
    await poll()
    t.same(await states(), ['deleted deleting'])
    const [row] = await plane.sql('select purge_after, generation from tenants where region_id = $1', [
      plane.region().id,
    ])
    t.same(row, { purge_after: plane.clock.now(), generation: 2 }, 'its data is deleted at once')
    await plane.settle()
    plane.clock.pass(delay - 1)
    await poll()
    t.same(await states(), [], `not before ${delay} s`)
    plane.clock.pass(1)
    await poll()
    t.same(await states(), ['warm pending'])
  }
  await plane.settle()
  await poll()
  await fail()
  await poll()
  await plane.settle()
  plane.clock.pass(5)
  await poll()
  t.same(await states(), ['warm pending'], 'after a success the delay begins again')
})

t.test('While failed tenants cannot be removed, no more are created', async (t) => {
  const { poll } = pool(4)
  await poll()
  for (let round = 0; round < 10; round++) {
    await plane.sql("update tenants set status = 'failed' where region_id = $1 and desired = 'warm'", [
      plane.region().id,
    ])
    await poll()
    plane.clock.pass(600)
  }
  t.same(await states(), ['deleted deleting', 'deleted deleting'])
})

t.test('A smaller pool removes its surplus, unfinished first, and a pool of size 0 removes all', async (t) => {
  await fill(3)
  await pool(4).poll()
  t.same((await states()).at(-1), 'warm pending')
  await pool(3).poll()
  t.same(await states(), ['warm warm', 'warm warm', 'warm warm', 'deleted deleting'])
  await pool(0).poll()
  t.same(
    await states(),
    Array.from({ length: 4 }, () => 'deleted deleting'),
  )
})

t.test('When the images change, the pool is renewed one by one', async (t) => {
  await fill(3)
  const renewed = { ...oldImages, runtime: 'sha256:runtime-new' }
  const { poll } = pool(3, async () => renewed)
  const readyCounts: number[] = []
  for (let round = 0; round < 12; round++) {
    await poll()
    readyCounts.push((await states()).filter((state) => state === 'warm warm').length)
    // New tenants get the images of the region.
    await plane.sql(
      "update tenants set runtime_image = $2, postgres_image = $3 where region_id = $1 and status = 'pending'",
      [plane.region().id, renewed.runtime, renewed.postgres],
    )
    await plane.settle()
  }
  t.same(
    await plane.sql('select status, runtime_image from tenants where region_id = $1', [plane.region().id]),
    Array.from({ length: 3 }, () => ({ status: 'warm', runtime_image: renewed.runtime })),
  )
  t.same(Math.min(...readyCounts), 2, 'two were ready at any time')
})

t.test('While the engine does not respond nothing is created or renewed, and failed tenants are removed', async (t) => {
  await fill(1)
  const { poll } = pool(3, () => Promise.reject(new Error('unreachable')))
  await poll()
  t.same(await states(), ['warm warm'])
  await plane.sql("update tenants set status = 'failed' where region_id = $1", [plane.region().id])
  await poll()
  t.same(await states(), ['deleted deleting'])
})

t.test('An idle pool writes nothing', async (t) => {
  await fill(2)
  const { poll } = pool(2)
  const before = await plane.sql('select * from tenants where region_id = $1 order by id', [plane.region().id])
  plane.clock.pass(60)
  await poll()
  t.same(await plane.sql('select * from tenants where region_id = $1 order by id', [plane.region().id]), before)
})

t.test('A control plane that no longer leads writes nothing', async (t) => {
  await fill(2)
  const before = await states()
  await plane.changeLeader()
  t.ok(await isRejected(pool(4).poll()), 'none is created')
  t.ok(await isRejected(pool(1).poll()), 'none is removed')
  t.same(await states(), before)
  plane.epoch += 1n
})
