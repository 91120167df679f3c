// The API changes, suspends, restarts, pauses and wakes dedicated tenants, and rejects requests of this kind for shared tenants.
import { internalPaths, internalTokenHeader } from '@tenantry/contract'
import t, { type Test } from 'tap'
import type { OperationBody, TenantBody } from '#control-plane/tenants/tenant-body.ts'
import { until } from '#test/support/until.ts'
import {
  internalToken,
  isError,
  newName,
  startApi,
  type ApiResponse,
  type CreatedTenant,
} from '#test/support/control-plane/api.ts'

const api = await startApi(t, { cloud: true })

type Changed = TenantBody & { operation: OperationBody | null }

const megabyte = 2 ** 20
const wait = { prefer: 'wait=30' }
const dedicated = (name = newName()) => api.create(name, { plan: 'Pro', region: 'cloud' })
const patch = (id: string, body: object, headers: Record<string, string> = wait) =>
  api.call('PATCH', `/v1/tenants/${id}`, { body, headers })
const post = (id: string, action: string, headers: Record<string, string> = wait) =>
  api.call('POST', `/v1/tenants/${id}/${action}`, { headers })
const wake = (id: string, token = internalToken) =>
  api.call('POST', internalPaths.wake(id), { key: null, headers: { [internalTokenHeader]: token } })
const changed = ({ body }: ApiResponse) => body as Changed
const stateOf = (id: string) =>
  api.engine.stacks.get(id)?.containers.map(({ labels, state }) => `${labels.service ?? ''} ${state}`)
const operations = async (id: string) =>
  ((await api.call('GET', `/v1/operations?tenant_id=${id}`)).body as { operations: OperationBody[] }).operations.map(
    ({ kind, state }) => `${kind} ${state}`,
  )

t.test('a dedicated tenant is created with its own services, and shows their limits', async (t) => {
  const tenant = await dedicated()
  t.match(tenant, {
    isolation: 'database-per-tenant',
    status: 'ready',
    region: 'cloud',
    generation: 1,
    drift_policy: 'repair',
    suspend_reason: null,
    payment_required: false,
    pause_after_seconds: null,
    backup_schedule: null,
    backups_kept: 7,
    resources: {
      postgres: { memory_bytes: 1024 * megabyte, cpu_millis: 1000 },
      runtime: { memory_bytes: 1024 * megabyte, cpu_millis: 1000 },
    },
  })
  t.same(stateOf(tenant.tenant_id), ['postgres running', 'runtime running'])
  t.match(await api.tenant(tenant.tenant_id), { runtime_image: /^sha256:[0-9a-f]{64}$/ })
  t.match(await api.create(), { resources: null, runtime_image: null }, 'a shared tenant has no limits and no image')
})

t.test('each setting is stored, and null resets it', async (t) => {
  const { tenant_id: id } = await dedicated()
  const settings = {
    drift_policy: 'report',
    pause_after_seconds: 600,
    backup_schedule: '30 2 * * 1-5',
    backups_kept: 30,
  }
  t.match(await patch(id, settings), {
    status: 200,
    body: { ...settings, operation: { kind: 'update', state: 'succeeded' } },
  })
  t.match(await api.tenant(id), settings)
  t.match(await patch(id, { pause_after_seconds: 0 }), { body: { ...settings, pause_after_seconds: 0 } })
  const none = { pause_after_seconds: null, backup_schedule: null }
  t.match(await patch(id, none), { body: none })
  const [entry] = ((await api.call('GET', '/v1/audit?limit=1')).body as { entries: object[] }).entries
  t.match(entry, { action: 'tenant.update', target: id, detail: none })
})

t.test('limits are set one by one, up to the size of the host', async (t) => {
  const { tenant_id: id, resources: plan } = await dedicated()
  const small = { postgres: { memory_bytes: 256 * megabyte } }
  t.match(await patch(id, { resources: small }), {
    status: 200,
    body: {
      operation: { kind: 'resize', state: 'succeeded' },
      resources: { postgres: { memory_bytes: 256 * megabyte, cpu_millis: 1000 }, runtime: plan?.runtime },
    },
  })
  t.match(await patch(id, { resources: { runtime: { cpu_millis: 4000 } } }), {
    body: {
      resources: {
        postgres: { memory_bytes: 256 * megabyte, cpu_millis: 1000 },
        runtime: { ...plan?.runtime, cpu_millis: 4000 },
      },
    },
  })
  const [postgres] = api.engine.stacks.get(id)?.containers ?? []
  t.match(postgres?.resources, { memoryBytes: 256 * megabyte, cpuMillis: 1000 }, 'the engine has the new limits')

  const before = await api.counts()
  const beyond = [
    [
      { postgres: { memory_bytes: 8192 * megabyte + 1 } },
      '"resources.postgres.memory_bytes" is 8589934593, but the host has 8589934592',
    ],
    [
      { runtime: { memory_bytes: 512 * megabyte, cpu_millis: 4001 } },
      '"resources.runtime.cpu_millis" is 4001, but the host has 4000',
    ],
  ] as const
  for (const [resources, names] of beyond)
    isError(t, await patch(id, { resources }), 422, 'LIMITS_BEYOND_HOST', names, names)
  api.engine.isReachable = false
  const unreachable = await patch(id, { resources: small })
  api.engine.isReachable = true
  isError(t, unreachable, 503, 'ENGINE_UNREACHABLE', 'cannot be reached', 'an unreachable engine')
  t.same(unreachable.headers['retry-after'], '1')
  t.same(await api.counts(), before, 'nothing is written')

  t.match(
    await patch(id, { resources: null }),
    { body: { resources: plan, operation: { kind: 'resize' } } },
    'the limits of the plan apply again',
  )
  t.match(await patch(id, { plan: 'Free' }), {
    body: {
      isolation: 'database-per-tenant',
      resources: { postgres: { memory_bytes: 384 * megabyte, cpu_millis: 500 } },
    },
  })
})

t.test('a suspension stops a tenant with a reason, and a resumption clears both', async (t) => {
  const { tenant_id: id } = await dedicated()
  const suspension = { suspended: true, suspend_reason: 'Rechnung 7 ist offen – bitte zahlen', payment_required: true }
  t.match(await patch(id, suspension), {
    body: {
      status: 'suspended',
      suspend_reason: suspension.suspend_reason,
      payment_required: true,
      operation: { kind: 'suspend', state: 'succeeded' },
    },
  })
  t.same(stateOf(id), ['postgres exited', 'runtime exited'])
  t.match(await api.published.some(new Set([id])), [
    { route: { phase: 'suspended', reason: suspension.suspend_reason, payment_required: true } },
  ])
  t.match(await patch(id, { suspend_reason: 'abuse', payment_required: false }), {
    body: { status: 'suspended', suspend_reason: 'abuse', payment_required: false, operation: { kind: 'update' } },
  })
  isError(t, await post(id, 'pause'), 409, 'NOT_ACTIVE', 'suspended', 'a pause of a suspended tenant')
  t.match(
    await post(id, 'wake'),
    { status: 202, body: { status: 'suspended', operation: null } },
    'a wake changes nothing',
  )
  t.match(await patch(id, { suspended: false }), {
    body: {
      status: 'ready',
      suspend_reason: null,
      payment_required: false,
      operation: { kind: 'resume', state: 'succeeded' },
    },
  })
  t.same(stateOf(id), ['postgres running', 'runtime running'])
  for (const body of [
    { suspend_reason: 'why not' },
    { payment_required: true },
    { suspended: false, suspend_reason: 'why not' },
  ]) {
    isError(t, await patch(id, body), 409, 'NOT_SUSPENDED', '"suspend_reason"', JSON.stringify(body))
  }
})

t.test('a restart recreates the containers, once for one Idempotency-Key', async (t) => {
  const { tenant_id: id } = await dedicated()
  const names = () => api.engine.stacks.get(id)?.containers.map(({ name }) => name)
  const before = names()
  const headers = { ...wait, 'idempotency-key': newName('key') }
  const first = await post(id, 'restart', headers)
  t.match(first, { status: 202, body: { generation: 2, operation: { kind: 'restart', state: 'succeeded' } } })
  const after = names()
  t.not(after?.[0], before?.[0], 'the container is a new one')
  t.match(await post(id, 'restart', headers), {
    status: 202,
    headers: { 'idempotency-replayed': 'true' },
    body: first.body as object,
  })
  t.same(names(), after)
  t.same((await api.tenant(id)).generation, 2)
})

t.test('a pause stops a tenant, a wake starts it, and a repeat of either changes nothing', async (t) => {
  const { tenant_id: id } = await dedicated()
  t.match(
    await post(id, 'wake'),
    { status: 202, body: { status: 'ready', generation: 1, operation: null } },
    'the tenant is not paused',
  )
  t.match(await post(id, 'pause'), {
    status: 202,
    body: { status: 'paused', generation: 2, operation: { kind: 'pause', state: 'succeeded' } },
  })
  t.same(stateOf(id), ['postgres exited', 'runtime exited'])
  t.match(await api.published.some(new Set([id])), [{ route: { phase: 'paused' } }])
  t.match(await post(id, 'pause'), { status: 202, body: { generation: 2, operation: null } })
  t.match((await api.call('GET', '/v1/tenants?status=paused')).body, { tenants: [{ tenant_id: id }] })

  t.match(await patch(id, { plan: 'Enterprise' }), {
    status: 200,
    body: { status: 'paused', plan: 'Enterprise', operation: { kind: 'update', state: 'succeeded' } },
  })
  t.match(
    await patch(id, { suspended: false }),
    { body: { status: 'paused' } },
    'a tenant that is not suspended does not resume',
  )
  t.match(await post(id, 'restart'), {
    status: 202,
    body: { status: 'paused', operation: { kind: 'restart', state: 'succeeded' } },
  })
  t.same(
    stateOf(id)?.filter((state) => state.endsWith('running')),
    [],
  )

  t.match(await post(id, 'wake'), {
    status: 202,
    body: { status: 'ready', operation: { kind: 'wake', state: 'succeeded' } },
  })
  t.same(stateOf(id), ['postgres running', 'runtime running'])
  t.match(await api.published.some(new Set([id])), [{ route: { phase: 'ready' } }])
  t.match(await patch(id, { suspended: true }), { body: { status: 'suspended' } })
})

t.test('a gateway wakes a tenant once, however many requests wait for it', async (t) => {
  const { tenant_id: id } = await dedicated()
  await post(id, 'pause')
  const responses = await Promise.all(Array.from({ length: 5 }, () => wake(id)))
  t.same(
    responses.map(({ status }) => status),
    [202, 202, 202, 202, 202],
  )
  await until(async () => (await api.tenant(id)).status === 'ready', 'readiness')
  t.same((await wake(id)).status, 202, 'a later wake')
  t.same(await operations(id), ['create succeeded', 'pause succeeded', 'wake succeeded'])
  const { entries } = (await api.call('GET', '/v1/audit?limit=1')).body as { entries: object[] }
  t.match(entries, [{ actor: 'gateway', action: 'tenant.wake', target: id }])
  for (const unknown of ['t_00000000000000000000', 'acme'])
    isError(t, await wake(unknown), 404, 'TENANT_NOT_FOUND', 'tenant', unknown)
  t.same((await wake(id, 'x'.repeat(internalToken.length))).status, 404)
})

t.test('a wake supersedes a pause in progress', async (t) => {
  const { tenant_id: id } = await dedicated()
  const gate = Promise.withResolvers<undefined>()
  api.engine.gate = gate.promise.then(() => undefined)
  const paused = changed(await post(id, 'pause', {}))
  isError(
    t,
    await patch(id, { plan: 'Free' }, {}),
    423,
    'OPERATION_IN_PROGRESS',
    paused.operation?.id ?? '',
    'a change meanwhile',
  )
  const woken = changed(await post(id, 'wake', {}))
  t.match(woken, { operation: { kind: 'wake' }, generation: 3 })
  t.same(
    changed(await post(id, 'wake', {})).operation?.id,
    woken.operation?.id,
    'a repeat returns the operation in progress',
  )
  gate.resolve(undefined)
  api.engine.gate = Promise.resolve()
  await until(
    async () => (await api.tenant(id)).status === 'ready' && (await api.tenant(id)).observed_generation === 3,
    'readiness',
  )
  t.same(await operations(id), ['create succeeded', 'pause superseded', 'wake succeeded'])
  t.same(stateOf(id), ['postgres running', 'runtime running'])
})

t.test('a backup in progress does not block a change', async (t) => {
  const { tenant_id: id } = await dedicated()
  await api.sql(
    "insert into operations (id, tenant_id, kind, state, generation) values (gen_random_uuid(), $1, 'backup', 'running', 1)",
    [id],
  )
  t.match(await patch(id, { plan: 'Free' }), { status: 200, body: { operation: { state: 'succeeded' } } })
  t.same(await operations(id), ['create succeeded', 'backup running', 'update succeeded'])
})

t.test('fields and actions that need dedicated services are rejected by name for a shared tenant', async (t) => {
  const { tenant_id: id } = await api.create()
  const before = await api.counts()
  const isNotDedicated = async (t: Test, response: Promise<ApiResponse>, names: string) =>
    isError(t, await response, 422, 'NOT_DEDICATED', names, names)
  await isNotDedicated(t, patch(id, { resources: { postgres: { cpu_millis: 500 } } }), '"resources"')
  await isNotDedicated(t, patch(id, { pause_after_seconds: 60 }), '"pause_after_seconds"')
  for (const action of ['restart', 'pause']) await isNotDedicated(t, post(id, action), action)
  await isNotDedicated(t, api.call('GET', `/v1/tenants/${id}/logs?component=runtime`), 'log')
  t.same(await api.counts(), before, 'nothing is written')
  t.match(await post(id, 'wake'), { status: 202, body: { operation: null } })
  const both = { drift_policy: 'ignore', backups_kept: 3, backup_schedule: '0 0 * * *' }
  t.match(await patch(id, both), { status: 200, body: both }, 'backups need no services of its own')
  const tenant = await dedicated()
  await api.call('DELETE', `/v1/tenants/${tenant.tenant_id}`, { headers: wait })
  for (const action of ['restart', 'pause', 'wake'])
    isError(t, await post(tenant.tenant_id, action), 409, 'TENANT_DELETED', 'deleted', `${action} of a deleted tenant`)
})

t.test('a POST without a body rejects fields and parameters', async (t) => {
  const { tenant_id: id }: CreatedTenant = await dedicated()
  t.same((await api.call('POST', `/v1/tenants/${id}/wake`, { body: {} })).status, 202)
  isError(
    t,
    await api.call('POST', `/v1/tenants/${id}/wake`, { body: { now: true } }),
    400,
    'UNKNOWN_FIELD',
    '"now"',
    'a field',
  )
  isError(
    t,
    await api.call('POST', `/v1/tenants/${id}/restart?now=1`),
    400,
    'UNKNOWN_PARAMETER',
    '"now"',
    'a parameter',
  )
})

t.test('no call failed with an internal error', (t) => {
  const failed = api.log.filter((line) => line.includes('The request failed.') && !line.includes('ENGINE_UNREACHABLE'))
  t.same(failed, [])
  t.end()
})
