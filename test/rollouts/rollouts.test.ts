// Rollouts on a real control database, with the control plane killed at every call it makes.
import t from 'tap'
import type { RolloutLedger } from '#control-plane/rollouts/rollout-store.ts'
import { isRejected, oldImages } from '#test/support/control-plane/plane.ts'
import { badImage, newImage, newPostgres, openRollouts } from './support/rollouts.ts'

const {
  plane,
  clock,
  store,
  ledger,
  signal,
  cancel,
  ill,
  components,
  controllerOf,
  begin,
  second,
  finish,
  images,
  allHave,
  addTenants,
} = await openRollouts(t)

t.beforeEach(async () => {
  ill.clear()
  await plane.nextRegion()
})

t.test('one tenant first, then growing waves, each well for the soak; stopped ones last', async (t) => {
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
  t.match(await plane.tenant(ids[1] ?? ''), { runtime_image: oldImages.runtime }, 'the others wait')
  await plane.settle()
  await controller.poll(signal)
  clock.pass(9)
  await controller.poll(signal)
  t.equal((await store.get(id))?.wave, 1, 'well for 9 s')
  clock.pass(1)
  await controller.poll(signal)
  t.equal((await store.get(id))?.wave, 2, 'well for 10 s')
  t.match(await plane.tenant(resting), { runtime_image: oldImages.runtime })
  const ended = await finish(id)
  t.match(ended, { state: 'succeeded', wave: 4, error: undefined })
  t.same(
    ended.tenants.map(({ tenantId, wave, state }) => [tenantId, wave, state]),
    [...ids.map((one, at) => [one, [1, 2, 2, 3, 3, 3, 3, 4, 4][at], 'moved']), [resting, 0, 'moved']],
  )
  await allHave(t, newImage, 'all have it')
  t.match(await plane.tenant(resting), { desired: 'paused' }, 'who was stopped stays so')
})

t.test('tenants of other regions, without services, made in advance or being deleted are left alone', async (t) => {
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
  t.same((await rows()).length, 2, 'all but the deleted one')
  t.same(
    await rows(),
    before.filter(({ id }) => id !== others[2]),
  )
})

t.test('a new Postgres leaves the runtime as it is', async (t) => {
  const [id = ''] = await addTenants(1)
  t.match(await finish((await begin({ component: 'postgres', imageId: newPostgres })).id), { state: 'succeeded' })
  t.match(await plane.tenant(id), { runtime_image: oldImages.runtime, postgres_image: newPostgres })
})

t.test('an image that is of another component, or is gone from the engine, comes to no tenant', async (t) => {
  await addTenants(3)
  const cases: [imageId: string, error: RegExp][] = [
    [newPostgres, /is of the component "postgres"\. Allowed: images with the label org\.tenantry\.component=runtime/],
    ['sha256:unlabelled', /has no label org\.tenantry\.component/],
    ['sha256:gone', /"sha256:gone" is not there/],
  ]
  components.set('sha256:unlabelled', undefined)
  for (const [imageId, error] of cases)
    t.match(await finish((await begin({ imageId })).id), { state: 'rolled_back', error, wave: 0, tenants: [] }, imageId)
  await allHave(t, oldImages.runtime, 'all have the old one')
})

t.test('an image that goes away between two waves stops it, and all get their former image back', async (t) => {
  await addTenants(3)
  const { id } = await begin()
  const controller = controllerOf(ledger)
  while ((await store.get(id))?.wave !== 1) await second(controller)
  components.delete(newImage)
  t.teardown(() => components.set(newImage, 'runtime'))
  t.match(await finish(id), {
    state: 'rolled_back',
    error: `the image "${newImage}" is not there`,
    wave: 1,
    tenants: [{ state: 'returned' }],
  })
  await allHave(t, oldImages.runtime, 'all have the old one')
})

t.test('a tenant that fails stops it, and all get their former image back', async (t) => {
  const ids = await addTenants(8)
  // Not all had the same.
  await plane.sql("update tenants set runtime_image = 'sha256:older' where id = $1", [ids[1]])
  const before = await images()
  const { id } = await begin()
  const controller = controllerOf(ledger)
  while ((await store.get(id))?.wave !== 3) await second(controller)
  // The image breaks in the third wave.
  await plane.sql("update tenants set status = 'failed' where id = $1", [ids[4]])
  const ended = await finish(id)
  t.match(ended, { state: 'rolled_back', error: `${ids[4]} failed with the new image` })
  t.same(
    ended.tenants.map(({ state }) => state),
    Array.from({ length: 7 }, () => 'returned'),
  )
  t.same(await images(), before)
  t.match(await plane.tenant(ids[7] ?? ''), { generation: 1 }, 'who had not been come to was never touched')
})

t.test('an image with which nobody comes up touches one tenant', async (t) => {
  const ids = await addTenants(5)
  const { id } = await begin({ imageId: badImage })
  t.match(await finish(id, badImage), {
    state: 'rolled_back',
    error: `${ids[0]} failed with the new image`,
    wave: 1,
    tenants: [{ tenantId: ids[0], state: 'returned' }],
  })
  await allHave(t, oldImages.runtime, 'all have the old one')
  t.match(await plane.tenant(ids[0] ?? ''), { status: 'ready' })
})

t.test('one that comes up and says that it is not well stops it after its time', async (t) => {
  const ids = await addTenants(4)
  ill.add(ids[2] ?? '')
  t.match(await finish((await begin()).id), {
    state: 'rolled_back',
    error: `${ids[2]} was not well with the new image within 60 s`,
    wave: 2,
  })
  await allHave(t, oldImages.runtime, 'all have the old one')
})

t.test('the one that was named goes first', async (t) => {
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

t.test('what operators do meanwhile: delete, pause, change, begin something', async (t) => {
  const ids = await addTenants(7)
  const { id } = await begin()
  const controller = controllerOf(ledger)
  while ((await store.get(id))?.wave !== 2) await second(controller)
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
  t.match(await store.get(id), { state: 'running' }, 'it waits for the backup')
  t.match(await plane.tenant(ids[3] ?? ''), { runtime_image: oldImages.runtime, generation: 1 })
  await plane.sql("update operations set state = 'succeeded'")
  const ended = await finish(id)
  t.match(ended, { state: 'succeeded' })
  t.same(ended.tenants.find(({ tenantId }) => tenantId === ids[1])?.state, 'gone')
  t.ok(
    ended.tenants.some(({ tenantId }) => tenantId === late),
    'one that came meanwhile is among them',
  )
  await allHave(t, newImage, 'all have it')
})

t.test('cancelled: all come back, and it ends', async (t) => {
  await addTenants(6)
  const { id } = await begin()
  const controller = controllerOf(ledger)
  while ((await store.get(id))?.wave !== 2) await second(controller)
  t.match(await cancel(id), { state: 'rolling_back' })
  t.match(await cancel(id), { state: 'rolling_back' }, 'asked again')
  t.match(await finish(id), { state: 'rolled_back', error: 'cancelled by the operator' })
  await allHave(t, oldImages.runtime, 'all have the old one')
  t.same(
    (await plane.sql('select action from audit_log where target = $1 order by seq', [id])).map(({ action }) => action),
    ['rollout.create', 'rollout.cancel', 'rollout.cancel'],
  )
})

t.test('a cancel that comes while a step is decided wins', async (t) => {
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
  await allHave(t, oldImages.runtime, 'nobody was moved')
  t.match(await finish(id), { state: 'rolled_back', tenants: [] })
})

t.test('a tenant that changed while a step was decided is left out of it', async (t) => {
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

t.test('who does not lead any more takes no step', async (t) => {
  await addTenants(2)
  const { id } = await begin()
  const before = await store.get(id)
  const controller = controllerOf(ledger)
  await plane.changeLeader()
  t.ok(await isRejected(controller.poll(signal)))
  t.same(await store.get(id), before)
  await allHave(t, oldImages.runtime, 'nobody was moved')
  plane.epoch += 1n
  t.match(await finish(id), { state: 'succeeded' })
})

/** Dies at the step of that number: before it has an effect, or after. To die while looking is to die before the next step. */
function dying(step: number, when: 'before' | 'after'): { ledger: RolloutLedger; died: () => boolean } {
  let left = step
  const unlessDead = () => {
    if (left <= 0) throw new Error('dead')
  }
  const mortal: RolloutLedger = {
    async open() {
      unlessDead()
      return ledger.open()
    },
    async subjects(rollout) {
      unlessDead()
      return ledger.subjects(rollout)
    },
    async take(...step) {
      left--
      if (when === 'before') unlessDead()
      const taken = await ledger.take(...step)
      unlessDead()
      return taken
    },
  }
  return { ledger: mortal, died: () => left <= 0 }
}

for (const outcome of ['succeeded', 'rolled_back'] as const) {
  t.test(`killed at any step, it goes on with the next control plane: ${outcome}`, async (t) => {
    let steps = 0
    for (let died = true; died; steps++) {
      for (const when of ['before', 'after'] as const) {
        await plane.nextRegion()
        const ids = await addTenants(3)
        const resting = await plane.addTenant({ desired: 'suspended', status: 'suspended' })
        const { id } = await begin({ soakSeconds: 2, deadlineSeconds: 5 })
        if (outcome === 'rolled_back') ill.add(ids[2] ?? '')
        const mortal = dying(steps + 1, when)
        const controller = controllerOf(mortal.ledger)
        while (!mortal.died() && (await store.get(id))?.finishedAt === undefined)
          await second(controller).catch(() => undefined)
        died = mortal.died()
        // Nobody leads for longer than any deadline.
        clock.pass(100)
        const ended = await finish(id)
        t.match(ended, { state: outcome }, `${when} step ${steps + 1}`)
        await allHave(t, outcome === 'succeeded' ? newImage : oldImages.runtime, 'all have the same image')
        t.same(
          await plane.sql("select 1 from operations where tenant_id = any($1) and state in ('pending', 'running')", [
            [...ids, resting],
          ]),
          [],
          'nothing is left open',
        )
        t.same(
          ended.tenants.map(({ tenantId }) => tenantId),
          outcome === 'succeeded' ? [...ids, resting] : ids,
          'each tenant was come to once',
        )
      }
    }
    t.ok(steps > 6, `${steps} steps`)
  })
}
