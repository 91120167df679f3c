// Drift, health and usage of a tenant with its own services, as the engine reports them.
import t from 'tap'
import type { Drift } from '#control-plane/drift/drift.ts'
import { until } from '#test/support/until.ts'
import { isError, startApi, newName } from '#test/support/control-plane/api.ts'

// Under the policy "report" the control plane does not repair the drift of this test.
const api = await startApi(t, { cloud: true })
const dedicated = async () => {
  const tenant = await api.create(newName(), { plan: 'Pro', region: 'cloud' })
  await api.call('PATCH', `/v1/tenants/${tenant.tenant_id}`, {
    body: { drift_policy: 'report' },
    headers: { prefer: 'wait=30' },
  })
  return tenant
}
const drift = async (id: string) => (await api.call('GET', `/v1/tenants/${id}/drift`)).body as Drift
const get = (id: string, what: string) => api.call('GET', `/v1/tenants/${id}/${what}`)
const service = (id: string, name: string) => {
  const found = api.engine.stacks.get(id)?.containers.find(({ labels }) => labels.service === name)
  if (found === undefined) throw new Error(`no ${name}`)
  return found
}

t.test('Each manual change is a difference, and is not repaired under the policy "report"', async (t) => {
  const { tenant_id: id } = await dedicated()
  t.match(await drift(id), { tenant_id: id, policy: 'report', observed_at: String, drifted: false, differences: [] })
  service(id, 'postgres').state = 'paused'
  service(id, 'runtime').resources.memoryBytes = 64
  const seen = await drift(id)
  t.ok(seen.drifted)
  t.equal(seen.differences.length, 2)
  t.match(seen.differences, [
    { component: 'postgres', field: 'state', desired: 'running', observed: 'paused' },
    { component: 'runtime', field: 'memory_bytes', desired: 2 ** 30, observed: 64 },
  ])
  const stack = api.engine.stacks.get(id)
  if (stack === undefined) throw new Error('no stack')
  stack.volumes = stack.volumes.filter(({ name }) => !name.endsWith('-data'))
  stack.containers = stack.containers.filter(({ labels }) => labels.service !== 'runtime')
  t.match(
    (await drift(id)).differences.map(({ component, field }) => `${component} ${field}`),
    ['volume/data existence', 'postgres state', 'runtime existence'],
  )
})

t.test('Under the policy "repair" a difference is repaired, and then there is none', async (t) => {
  const { tenant_id: id } = await dedicated()
  await api.call('PATCH', `/v1/tenants/${id}`, { body: { drift_policy: 'repair' }, headers: { prefer: 'wait=30' } })
  service(id, 'postgres').state = 'exited'
  await until(async () => !(await drift(id)).drifted, 'the repair')
  t.same(service(id, 'postgres').state, 'running')
})

t.test('Without services there is no drift, and an unreachable engine is an error', async (t) => {
  const shared = await api.create()
  t.match(await drift(shared.tenant_id), { drifted: false, differences: [] })
  const { tenant_id: id } = await dedicated()
  api.engine.isReachable = false
  const response = await get(id, 'drift')
  const ofShared = await get(shared.tenant_id, 'drift')
  api.engine.isReachable = true
  isError(t, response, 503, 'ENGINE_UNREACHABLE', 'cannot be reached', 'drift')
  t.same(ofShared.status, 200)
  isError(
    t,
    await get('t_00000000000000000000', 'drift'),
    404,
    'TENANT_NOT_FOUND',
    'tenant',
    'drift of an unknown tenant',
  )
})

t.test('Services that do not exist yet are the difference of their tenant', async (t) => {
  api.engine.isReachable = false
  const response = await api.call('POST', '/v1/tenants', { body: { name: newName(), plan: 'Pro', region: 'cloud' } })
  const { tenant_id: id } = response.body as { tenant_id: string }
  t.match(await drift(id), {
    drifted: true,
    differences: [{ component: 'services', desired: 'present', observed: 'absent' }],
  })
  t.match((await get(id, 'health')).body, {
    status: 'unknown',
    components: { postgres: { status: 'unknown', container: null } },
  })
  api.engine.isReachable = true
  await until(async () => (await api.tenant(id)).status === 'ready', 'readiness')
})

t.test('Health reports each part, with the time of its observation', async (t) => {
  const { tenant_id: id } = await dedicated()
  const container = {
    state: 'running',
    health: 'healthy',
    restarts: 0,
    started_at: String,
    exit_code: 0,
    out_of_memory: false,
  }
  const part = { status: 'healthy', observed_at: String }
  t.match((await get(id, 'health')).body, {
    tenant_id: id,
    generation: 2,
    status: 'healthy',
    components: {
      database: part,
      storage: part,
      functions: part,
      postgres: { ...part, container },
      runtime: { ...part, container },
    },
  })
  service(id, 'runtime').health = 'unhealthy'
  t.match((await get(id, 'health')).body, {
    status: 'unhealthy',
    components: { postgres: part, runtime: { status: 'unhealthy', message: /health check/ } },
  })
  Object.assign(service(id, 'runtime'), { state: 'exited', outOfMemory: true, exitCode: 137 })
  t.match((await get(id, 'health')).body, {
    status: 'unhealthy',
    components: { runtime: { message: /memory/, container: { state: 'exited', exit_code: 137, out_of_memory: true } } },
  })
  Object.assign(service(id, 'runtime'), { state: 'running', health: 'starting', outOfMemory: false })
  t.match(
    (await get(id, 'health')).body,
    { status: 'unknown', components: { runtime: { status: 'unknown' } } },
    'not healthy yet',
  )
  service(id, 'runtime').health = 'healthy'

  api.region.agrees = false
  t.match(
    (await get(id, 'health')).body,
    { status: 'unknown', components: { database: { status: 'unknown' }, postgres: part } },
    'a silent runtime',
  )
  api.region.agrees = true
  api.engine.isReachable = false
  const unseen = await get(id, 'health')
  api.engine.isReachable = true
  t.match(
    unseen,
    {
      status: 200,
      body: { status: 'unknown', components: { database: part, runtime: { status: 'unknown', container: null } } },
    },
    'an unreachable engine',
  )

  await api.call('POST', `/v1/tenants/${id}/pause`, { headers: { prefer: 'wait=30' } })
  t.match(
    (await get(id, 'health')).body,
    {
      status: 'unknown',
      components: {
        database: { status: 'unknown' },
        postgres: { status: 'unknown', message: /stopped/, container: { state: 'exited' } },
      },
    },
    'a paused tenant is neither healthy nor unhealthy',
  )
  const shared = await api.create()
  const { components } = (await get(shared.tenant_id, 'health')).body as { components: object }
  t.same(Object.keys(components), ['database', 'storage', 'functions'])
})

t.test('Usage reports what each service uses now, and null where that is unknown', async (t) => {
  const { tenant_id: id } = await dedicated()
  const running = { cpu_seconds: 1.5, memory_bytes: 50_000_000 }
  t.match((await get(id, 'usage')).body, {
    resources: { storage: { files_bytes: 7 } },
    components: { postgres: { ...running, disk_bytes: 40_000_000 }, runtime: { ...running, disk_bytes: 4096 } },
  })
  service(id, 'runtime').state = 'exited'
  t.match((await get(id, 'usage')).body, {
    components: { postgres: running, runtime: { cpu_seconds: null, memory_bytes: null, disk_bytes: 4096 } },
  })
  const none = { cpu_seconds: null, memory_bytes: null, disk_bytes: null }
  t.match((await get(id, 'usage/2026-01')).body, { components: { postgres: none, runtime: none } }, 'of a past month')
  api.engine.isReachable = false
  const unseen = await get(id, 'usage')
  api.engine.isReachable = true
  t.match(unseen, { status: 200, body: { components: { postgres: none, runtime: none } } })
  const shared = await api.create()
  t.notOk('components' in ((await get(shared.tenant_id, 'usage')).body as object))
})
