// Rollouts run on a real control database, also with the control plane killed at each of its steps.
import t from 'tap'
import type { RolloutLedger } from '#control-plane/rollouts/store-ledger.ts'
import { isRejected, oldImages } from '#test/support/control-plane/plane.ts'
import { badImage, newImage, newPostgres, openRollouts } from './support/rollouts.ts'

const {
  plane,
  clock,
  store,
  ledger,
  signal,
  cancel,
  unhealthyTenants,
  components,
  controllerOf,
  begin,
  runSecond,
  finish,
  images,
  allHave,
  addTenants,
} = await openRollouts(t)

t.beforeEach(async () => {
  unhealthyTenants.clear()
  await plane.nextRegion()
})

t.test('a rollout moves one tenant first, then growing waves after each soak, and stopped tenants last', async (t) => {
  const ids = await addTenants(9)
  const resting = await plane.addTenant({ desired: 'paused', status: 'paused' })
  const { id } = await begin()
  const controller = controllerOf(ledger)
  await controller.poll(signal)
  t.match(await plane.tenant(ids[0] ?? ''), {
    runtime_image: newImage,
    postgres_image: oldImages.postgres,
    generation: 2,
  })
  t.match(await plane.sql('select kind, state, generation from operations where tenant_id = $1', [ids[0]]), [
    { kind: 'upgrade', state: 'pending', generation: 2 },
  ])
  t.match((await store.get(id))?.tenants, [{ tenantId: ids[0], from: oldImages.runtime, state: 'moving', wave: 1 }])
  t.match(await plane.tenant(ids[1] ?? ''), { runtime_image: oldImages.runtime }, 'the other tenants wait')
  await plane.settle()
  await controller.poll(signal)
  clock.pass(9)
  await controller.poll(signal)
  t.equal((await store.get(id))?.wave, 1, 'healthy for 9 s')
  clock.pass(1)
  await controller.poll(signal)
  t.equal((await store.get(id))?.wave, 2, 'healthy for 10 s')
  t.match(await plane.tenant(resting), { runtime_image: oldImages.runtime })
  const ended = await finish(id)
  t.match(ended, { state: 'succeeded', wave: 4, error: undefined })
  t.same(
    ended.tenants.map(({ tenantId, wave, state }) => [tenantId, wave, state]),
    [...ids.map((one, at) => [one, [1, 2, 2, 3, 3, 3, 3, 4, 4][at], 'moved']), [resting, 0, 'moved']],
  )
  await allHave(t, newImage, 'all tenants have the new image')
  t.match(await plane.tenant(resting), { desired: 'paused' }, 'a stopped tenant stays stopped')
})

t.test('a rollout skips shared, warm and deleted tenants', async (t) => {
  const [shared] = await plane.sql(
    "insert into shared_databases (id, region_id, name, capacity) values ($1, $1, 'homes', 10) returning id",
    [plane.region().id],
  )
  const others = [
    await plane.addTenant({ isolation: 'schema-per-tenant', shared_database_id: shared?.['id'] }),
    await plane.addTenant({ desired: 'warm', status: 'warm' }),
    await plane.addTenant({
      desired: 'deleted',
      status: 'deleting',
      purge_after: new Date(clock.now().getTime() + 1e9),
      runtime_image: oldImages.runtime,
    }),
  ]
  const rows = () =>
    plane.sql('select id, generation, runtime_image from tenants where id = any($1) order by id', [others])
  const before = await rows()
  t.match(await finish((await begin()).id), { state: 'succeeded', tenants: [] })
  t.same((await rows()).length, 2, 'all but the deleted tenant remain')
  t.same(
    await rows(),
    before.filter(({ id }) => id !== others[2]),
  )
})

t.test('a rollout of Postgres does not change the runtime', async (t) => {
  const [id = ''] = await addTenants(1)
  t.match(await finish((await begin({ component: 'postgres', imageId: newPostgres })).id), { state: 'succeeded' })
  t.match(await plane.tenant(id), { runtime_image: oldImages.runtime, postgres_image: newPostgres })
})

t.test("the image of clusters' members reaches clusters only, and that of runtimes reaches both", async (t) => {
  const [id = ''] = await addTenants(1)
  const cluster = await plane.addTenant({ isolation: 'cluster-per-tenant' })
  components.set('sha256:member-new', 'cluster-member')
  const member = { component: 'cluster-member', imageId: 'sha256:member-new' } as const
  t.match(await finish((await begin(member)).id), { state: 'succeeded', tenants: [{ tenantId: cluster }] })
  t.match(await plane.tenant(cluster), { runtime_image: oldImages.runtime, postgres_image: 'sha256:member-new' })
  t.match(await plane.tenant(id), { runtime_image: oldImages.runtime, postgres_image: oldImages.postgres })
  t.match(await finish((await begin({ component: 'postgres', imageId: newPostgres })).id), {
    tenants: [{ tenantId: id }],
  })
  t.match(await finish((await begin()).id), { state: 'succeeded', wave: 2 })
  t.match(await plane.tenant(cluster), { runtime_image: newImage, postgres_image: 'sha256:member-new' })
  t.match(await plane.tenant(id), { runtime_image: newImage, postgres_image: newPostgres })
  await t.rejects(begin({ ...member, canary: id }), { code: 'INVALID_FIELD' }, 'a canary without the component')
})

t.test('an image of another component, or missing on the engine, reaches no tenant', async (t) => {
  await addTenants(3)
  const cases: [imageId: string, error: RegExp][] = [
    [newPostgres, /is of the component "postgres"\. Allowed: images with the label org\.tenantry\.component=runtime/],
    ['sha256:unlabelled', /has no label org\.tenantry\.component/],
    ['sha256:gone', /"sha256:gone" is not there/],
  ]
  components.set('sha256:unlabelled', undefined)
  for (const [imageId, error] of cases)
    t.match(await finish((await begin({ imageId })).id), { state: 'rolled_back', error, wave: 0, tenants: [] }, imageId)
  await allHave(t, oldImages.runtime, 'all tenants have the old image')
})

t.test('an image that disappears between two waves rolls all tenants back', async (t) => {
  await addTenants(3)
  const { id } = await begin()
  const controller = controllerOf(ledger)
  while ((await store.get(id))?.wave !== 1) await runSecond(controller)
  components.delete(newImage)
  t.teardown(() => components.set(newImage, 'runtime'))
  t.match(await finish(id), {
    state: 'rolled_back',
    error: `the image "${newImage}" is not there`,
    wave: 1,
    tenants: [{ state: 'returned' }],
  })
  await allHave(t, oldImages.runtime, 'all tenants have the old image')
})

t.test('a tenant that fails rolls all tenants back to their former images', async (t) => {
  const ids = await addTenants(8)
  // One tenant had another image before.
  await plane.sql("update tenants set runtime_image = 'sha256:older' where id = $1", [ids[1]])
  const before = await images()
  const { id } = await begin()
  const controller = controllerOf(ledger)
  while ((await store.get(id))?.wave !== 3) await runSecond(controller)
  // The image breaks in the third wave.
  await plane.sql("update tenants set status = 'failed' where id = $1", [ids[4]])
  const ended = await finish(id)
  t.match(ended, { state: 'rolled_back', error: `${ids[4]} failed with the new image` })
  t.same(
    ended.tenants.map(({ state }) => state),
    Array.from({ length: 7 }, () => 'returned'),
  )
  t.same(await images(), before)
  t.match(await plane.tenant(ids[7] ?? ''), { generation: 1 }, 'a tenant of a later wave is unchanged')
})

t.test('an image with which no tenant starts reaches one tenant only', async (t) => {
  const ids = await addTenants(5)
  const { id } = await begin({ imageId: badImage })
  t.match(await finish(id, badImage), {
    state: 'rolled_back',
    error: `${ids[0]} failed with the new image`,
    wave: 1,
    tenants: [{ tenantId: ids[0], state: 'returned' }],
  })
  await allHave(t, oldImages.runtime, 'all tenants have the old image')
  t.match(await plane.tenant(ids[0] ?? ''), { status: 'ready' })
})

t.test('a tenant that starts but stays unhealthy rolls all tenants back after its deadline', async (t) => {
  const ids = await addTenants(4)
  unhealthyTenants.add(ids[2] ?? '')
  t.match(await finish((await begin()).id), {
    state: 'rolled_back',
    error: `The tenant ${ids[2]} was not healthy with the new image within 60 s.`,
    wave: 2,
  })
  await allHave(t, oldImages.runtime, 'all tenants have the old image')
})

t.test('the canary moves first', async (t) => {
  const ids = await addTenants(3)
  const ended = await finish((await begin({ canary: ids[2] })).id)
  t.match(ended, {
    state: 'succeeded',
    tenants: [
      { tenantId: ids[2], wave: 1 },
      { tenantId: ids[0], wave: 2 },
      { tenantId: ids[1], wave: 2 },
    ],
  })
})

t.test('a rollout continues while operators delete, pause, add and back up tenants', async (t) => {
  const ids = await addTenants(7)
  const { id } = await begin()
  const controller = controllerOf(ledger)
  while ((await store.get(id))?.wave !== 2) await runSecond(controller)
  await plane.request(ids[1] ?? '', 'delete', { desired: 'deleted', status: 'deleting', purge_after: clock.now() })
  await plane.request(ids[2] ?? '', 'pause', { desired: 'paused' })
  await plane.sql(
    "insert into operations (id, tenant_id, kind, state, generation) values (gen_random_uuid(), $1, 'backup', 'running', 1)",
    [ids[3]],
  )
  const late = await plane.addTenant()
  for (let seconds = 0; seconds < 100; seconds++) {
    await controller.poll(signal)
    await plane.sql(
      `update tenants set observed_generation = generation,
        status = case desired when 'active' then 'ready' else desired end where desired in ('active', 'paused')`,
    )
    await plane.sql("update operations set state = 'succeeded' where kind <> 'backup'")
    await plane.sql("delete from tenants where desired = 'deleted'")
    clock.pass(1)
  }
  t.match(await store.get(id), { state: 'running' }, 'the rollout waits for the backup')
  t.match(await plane.tenant(ids[3] ?? ''), { runtime_image: oldImages.runtime, generation: 1 })
  await plane.sql("update operations set state = 'succeeded'")
  const ended = await finish(id)
  t.match(ended, { state: 'succeeded' })
  t.same(ended.tenants.find(({ tenantId }) => tenantId === ids[1])?.state, 'gone')
  t.ok(
    ended.tenants.some(({ tenantId }) => tenantId === late),
    'a tenant that was added meanwhile has moved',
  )
  await allHave(t, newImage, 'all tenants have the new image')
})

t.test('a cancelled rollout returns all tenants and ends', async (t) => {
  await addTenants(6)
  const { id } = await begin()
  const controller = controllerOf(ledger)
  while ((await store.get(id))?.wave !== 2) await runSecond(controller)
  t.match(await cancel(id), { state: 'rolling_back' })
  t.match(await cancel(id), { state: 'rolling_back' }, 'a repeat of the cancellation')
  t.match(await finish(id), { state: 'rolled_back', error: 'The operator cancelled the rollout.' })
  await allHave(t, oldImages.runtime, 'all tenants have the old image')
  t.same(
    (await plane.sql('select action from audit_log where target = $1 order by seq', [id])).map(({ action }) => action),
    ['rollout.create', 'rollout.cancel', 'rollout.cancel'],
  )
})

t.test('a cancellation that arrives while a step is planned wins', async (t) => {
  await addTenants(2)
  const { id } = await begin()
  const seen = await store.get(id)
  if (seen === undefined) throw new Error('there is no rollout')
  const subjects = await ledger.subjects(seen)
  await cancel(id)
  t.equal(
    await ledger.take(seen, { do: 'move', wave: 1, tenantIds: subjects.map((one) => one.id) }, plane.epoch),
    undefined,
  )
  await allHave(t, oldImages.runtime, 'no tenant moved')
  t.match(await finish(id), { state: 'rolled_back', tenants: [] })
})

t.test('a step omits a tenant that changed while the step was planned', async (t) => {
  const [first = '', other = ''] = await addTenants(2)
  const { id } = await begin()
  const seen = await store.get(id)
  if (seen === undefined) throw new Error('there is no rollout')
  await plane.request(first, 'update', {})
  const after = await ledger.take(seen, { do: 'move', wave: 1, tenantIds: [first, other] }, plane.epoch)
  t.same(
    after?.tenants.map(({ tenantId }) => tenantId),
    [other],
  )
  t.match(await plane.tenant(first), { runtime_image: oldImages.runtime, generation: 2 })
  t.match(await finish(id), { state: 'succeeded' })
})

t.test('a control plane that no longer leads takes no step', async (t) => {
  await addTenants(2)
  const { id } = await begin()
  const before = await store.get(id)
  const controller = controllerOf(ledger)
  await plane.changeLeader()
  t.ok(await isRejected(controller.poll(signal)))
  t.same(await store.get(id), before)
  await allHave(t, oldImages.runtime, 'no tenant moved')
  plane.epoch += 1n
  t.match(await finish(id), { state: 'succeeded' })
})

/** Returns a ledger that fails at the given step, before or after the step's effect, and at every later call. */
function failingAt(step: number, when: 'before' | 'after'): { ledger: RolloutLedger; hasFailed: () => boolean } {
  let remaining = step
  const throwIfFailed = () => {
    if (remaining <= 0) throw new Error('killed')
  }
  const failingLedger: RolloutLedger = {
    async open() {
      throwIfFailed()
      return ledger.open()
    },
    async subjects(rollout) {
      throwIfFailed()
      return ledger.subjects(rollout)
    },
    async take(...step) {
      remaining--
      if (when === 'before') throwIfFailed()
      const taken = await ledger.take(...step)
      throwIfFailed()
      return taken
    },
  }
  return { ledger: failingLedger, hasFailed: () => remaining <= 0 }
}

for (const outcome of ['succeeded', 'rolled_back'] as const) {
  t.test(`after a kill at any step, the next control plane continues: ${outcome}`, async (t) => {
    let steps = 0
    for (let hasFailed = true; hasFailed; steps++) {
      for (const when of ['before', 'after'] as const) {
        await plane.nextRegion()
        const ids = await addTenants(3)
        const resting = await plane.addTenant({ desired: 'suspended', status: 'suspended' })
        const { id } = await begin({ soakSeconds: 2, deadlineSeconds: 5 })
        if (outcome === 'rolled_back') unhealthyTenants.add(ids[2] ?? '')
        const failingLedger = failingAt(steps + 1, when)
        const controller = controllerOf(failingLedger.ledger)
        while (!failingLedger.hasFailed() && (await store.get(id))?.finishedAt === undefined)
          await runSecond(controller).catch(() => undefined)
        hasFailed = failingLedger.hasFailed()
        // No control plane leads for longer than any deadline.
        clock.pass(100)
        const ended = await finish(id)
        t.match(ended, { state: outcome }, `${when} step ${steps + 1}`)
        await allHave(t, outcome === 'succeeded' ? newImage : oldImages.runtime, 'all tenants have the same image')
        t.same(
          await plane.sql("select 1 from operations where tenant_id = any($1) and state in ('pending', 'running')", [
            [...ids, resting],
          ]),
          [],
          'no operation stays open',
        )
        t.same(
          ended.tenants.map(({ tenantId }) => tenantId),
          outcome === 'succeeded' ? [...ids, resting] : ids,
          'each tenant moves once',
        )
      }
    }
    t.ok(steps > 6, `${steps} steps`)
  })
}
