// POST and PATCH of tenants in a region with hosts that have no memory for the tenant's own services: 507, before anything is changed.
import t from 'tap'
import { until } from '#test/support/until.ts'
import { startApi, type TestApi } from '#test/support/control-plane/api.ts'

/** Enough for the services of one tenant with the plan Pro, and not for those of two. */
const hostBytes = 3 * 2 ** 30
const wanted = (name: string, more: object = {}) => ({ name, plan: 'Pro', region: 'cloud', ...more })

t.test('A tenant that has no room is not created, and is when there is room again', async (t) => {
  const api = await startApi(t, { cloud: { hostBytes } })
  const first = await api.create('first', { plan: 'Pro', region: 'cloud' })
  t.match(first, { status: 'ready', isolation: 'database-per-tenant' })
  const before = await api.counts()
  t.match(await api.call('POST', '/v1/tenants', { body: wanted('second') }), {
    status: 507,
    body: {
      error: 'insufficient_storage',
      code: 'REGION_FULL',
      message:
        /^No host of the region "cloud" has enough memory .* the plan Pro and the isolation database-per-tenant\.$/,
    },
  })
  t.same(await api.counts(), before, 'nothing was created')
  const shared = wanted('shared', { isolation: 'schema-per-tenant' })
  t.equal((await api.call('POST', '/v1/tenants', { body: shared })).status, 201, 'a tenant without services of its own')

  const path = `/v1/tenants/${first.tenant_id}`
  t.equal((await api.call('DELETE', `${path}?purge=true`)).status, 202)
  await until(async () => (await api.call('GET', path)).status === 404, 'the first tenant is gone')
  t.match(await api.create('second', { plan: 'Pro', region: 'cloud' }), { status: 'ready' })
})

t.test('Tenants whose services have no host yet need room, too', async (t) => {
  const api = await startApi(t, { cloud: { hostBytes }, control: false })
  t.match(await api.call('POST', '/v1/tenants', { body: wanted('first') }), {
    status: 201,
    body: { status: 'pending' },
  })
  t.match(await api.call('POST', '/v1/tenants', { body: wanted('second') }), { status: 507 })
})

t.test('A tenant that was created in advance needs no room', async (t) => {
  const api = await startApi(t, { cloud: { hostBytes }, control: false })
  t.equal((await api.call('POST', '/v1/tenants', { body: wanted('first') })).status, 201)
  t.equal((await api.call('POST', '/v1/tenants', { body: wanted('second') })).status, 507)
  await api.sql("update tenants set desired = 'warm', status = 'warm', name = 'warm-' || substr(id, 3)")
  t.equal((await api.call('POST', '/v1/tenants', { body: wanted('second') })).status, 201)
})

t.test('A draining host has no room', async (t) => {
  const api = await startApi(t, { cloud: { hostBytes: 16 * hostBytes }, control: false })
  await api.sql(
    "insert into host_states (region_id, host_id, state, is_automatic) values ('cloud', 'cloud-1', 'draining', false)",
  )
  t.match(await api.call('POST', '/v1/tenants', { body: wanted('first') }), { status: 507 })
  await api.sql('delete from host_states')
  t.match(await api.call('POST', '/v1/tenants', { body: wanted('first') }), { status: 201 })
})

t.test('A tenant that was created in advance with a smaller plan needs room for the larger one', async (t) => {
  const api = await startApi(t, { cloud: { hostBytes } })
  const { tenant_id: id } = await api.create('first', { plan: 'Pro', region: 'cloud' })
  const makeWarm = "update tenants set desired = 'warm', status = 'warm', name = 'warm-' || substr(id, 3) where id = $1"
  await api.sql(makeWarm, [id])
  const larger = wanted('larger', { plan: 'Enterprise', isolation: 'database-per-tenant' })
  t.match(await api.call('POST', '/v1/tenants', { body: larger }), { status: 507, body: { code: 'REGION_FULL' } })
  t.equal((await api.call('POST', '/v1/tenants', { body: wanted('equal') })).status, 201)
})

t.test('A tenant does not get sizes for which its host has no memory', async (t) => {
  const api = await startApi(t, { cloud: { hostBytes } })
  const { tenant_id: id } = await api.create('first', { plan: 'Pro', region: 'cloud' })
  const path = `/v1/tenants/${id}`
  const patch = (body: object) => api.call('PATCH', path, { body, headers: { prefer: 'wait=30' } })
  const before = [await api.counts(), (await api.tenant(id)).generation, await reserved(api)]
  for (const body of [{ plan: 'Enterprise' }, { resources: { postgres: { memory_bytes: 3 * 2 ** 30 } } }])
    t.match(await patch(body), {
      status: 507,
      body: {
        code: 'REGION_FULL',
        message:
          "The host of the tenant's services does not have enough memory that is not reserved, for services with these sizes.",
      },
    })
  t.same([await api.counts(), (await api.tenant(id)).generation, await reserved(api)], before, 'nothing has changed')

  t.match(await patch({ resources: { runtime: { memory_bytes: 2 * 2 ** 30 } } }), {
    status: 200,
    body: { status: 'ready', operation: { state: 'succeeded' } },
  })
  t.same(await reserved(api), [{ host: 'cloud-1', bytes: 3 * 2 ** 30 }])
  t.match(await patch({ plan: 'Enterprise' }), { status: 200 }, 'a tenant with sizes of its own keeps them')
  t.match(await patch({ resources: null }), { status: 507 }, 'those of the plan are larger')
  t.match(await patch({ plan: 'Free', resources: null }), { status: 200, body: { status: 'ready' } })
  t.match((await reserved(api))[0]?.bytes, 939_524_096)
})

t.test('Growth that is not reserved yet counts for others', async (t) => {
  const api = await startApi(t, { cloud: { hostBytes: 2 * hostBytes } })
  const { tenant_id: id } = await api.create('first', { plan: 'Pro', region: 'cloud' })
  await api.create('second', { plan: 'Pro', region: 'cloud' })
  api.engine.isReachable = false
  const body = { resources: { postgres: { memory_bytes: 3 * 2 ** 30 } } }
  await api.sql('update tenants set resources = $2, generation = generation + 1 where id = $1', [
    id,
    {
      postgres: { memory_bytes: 3 * 2 ** 30, cpu_millis: 1_000 },
      runtime: { memory_bytes: 2 ** 30, cpu_millis: 1_000 },
    },
  ])
  api.engine.isReachable = true
  const { tenants } = (await api.call('GET', '/v1/tenants')).body as { tenants: { tenant_id: string; name: string }[] }
  const second = tenants.find(({ name }) => name === 'second')?.tenant_id ?? ''
  t.match(await api.call('PATCH', `/v1/tenants/${second}`, { body }), { status: 507 })
})

t.test('A tenant whose host has lost the room meanwhile is served and repaired with its former sizes', async (t) => {
  const api = await startApi(t, { cloud: { hostBytes } })
  const { tenant_id: id } = await api.create('first', { plan: 'Pro', region: 'cloud' })
  const before = await reserved(api)
  await api.sql("update tenants set plan_id = 'Enterprise', generation = generation + 1 where id = $1", [id])
  const full = { type: 'Services', status: 'False', reason: 'RegionFull' }
  const services = async () => (await api.tenant(id)).conditions.find(({ type }) => type === 'Services')
  await until(async () => (await services())?.reason === 'RegionFull', 'the report')
  t.match(await services(), full)
  t.match(await api.tenant(id), { status: 'ready', reason: /^No host of the region has enough free memory/ })
  const containers = () => api.engine.stacks.get(id)?.containers ?? []
  api.engine.stacks.set(id, {
    containers: [],
    networks: [],
    unlabelledVolumes: [],
    volumes: api.engine.stacks.get(id)?.volumes ?? [],
  })
  await until(() => containers().length === 2, 'the repair')
  t.same(
    containers().map(({ resources }) => resources.memoryBytes),
    [2 ** 30, 2 ** 30],
  )
  t.same(await reserved(api), before)
  await api.sql("update tenants set plan_id = 'Free', generation = generation + 1 where id = $1", [id])
  await until(async () => (await api.tenant(id)).reason === null, 'a plan that fits')
})

const threeHosts = (bytes: number) => ({ hosts: ['a', 'b', 'c'].map((id) => ({ id, bytes })) })

t.test('The services of a cluster that has grown go to a host with room, or the cluster does not grow', async (t) => {
  const api = await startApi(t, { cloud: threeHosts(7 * 2 ** 30) })
  const isolation = 'cluster-per-tenant'
  const { tenant_id: id } = await api.create('cluster', { plan: 'Pro', region: 'cloud', isolation })
  const placement = async () => (await api.reconcileStore.snapshot(id))?.placement ?? {}
  const before = await placement()
  t.equal(new Set([1, 2, 3].map((number) => before[`postgres-${number}`])).size, 3)
  const patch = (body: object) => api.call('PATCH', `/v1/tenants/${id}`, { body, headers: { prefer: 'wait=30' } })
  // With members of 6 GB, no host has room for a runtime of 2 GB.
  t.match(
    await patch({ resources: { postgres: { memory_bytes: 6 * 2 ** 30 }, runtime: { memory_bytes: 2 * 2 ** 30 } } }),
    {
      status: 507,
      body: { code: 'REGION_FULL', message: /^The hosts of the region "cloud" do not have enough memory/ },
    },
  )
  t.same(await placement(), before)
  const other = Object.entries(before).find(([service]) => service === 'runtime-1')?.[1] ?? ''
  const free =
    ['a', 'b', 'c'].find((host) => !['runtime-1', 'runtime-2'].some((service) => before[service] === host)) ?? ''
  // Another tenant reserves memory on the host of a runtime.
  const { tenant_id: neighbour } = await api.create('neighbour', {
    plan: 'Free',
    region: 'cloud',
    isolation: 'database-per-tenant',
  })
  const insert = 'insert into placements (tenant_id, service, host_id, memory_bytes) values ($1, $2, $3, $4)'
  await api.sql(insert, [neighbour, 'another', other, 4 * 2 ** 30])
  t.match(await patch({ resources: { runtime: { memory_bytes: 2 * 2 ** 30 } } }), {
    status: 200,
    body: { status: 'ready', operation: { state: 'succeeded' } },
  })
  t.same(await placement(), { ...before, 'runtime-1': free }, 'only the runtime has moved')
  const runtime = api.engine.stacks.get(id)?.containers.find(({ labels }) => labels.service === 'runtime-1')
  t.match(runtime, { host: free, resources: { memoryBytes: 2 * 2 ** 30 } })
})

async function reserved(api: TestApi): Promise<{ host: string; bytes: number }[]> {
  const rows = await api.sql('select host_id, sum(memory_bytes) as bytes from placements group by 1 order by 1')
  return rows.map(({ host_id: host, bytes }) => ({ host: String(host), bytes: Number(bytes) }))
}
