// What the API accepts for tenants with clusters, and what it rejects with which state: switchover, sessions, logs, changes.
import t from 'tap'
import { startApi, type ApiResponse } from '#test/support/control-plane/api.ts'
import { patroniReport } from './support.ts'

const api = await startApi(t, { cloud: true, control: false })

/** Makes a tenant with a cluster, in place of the reconciler. */
async function cluster(name: string): Promise<string> {
  const { body } = await api.call('POST', '/v1/tenants', { body: { name, plan: 'Pro', region: 'cloud' } })
  const { tenant_id: id } = body as { tenant_id: string }
  await api.sql("update tenants set isolation = 'cluster-per-tenant', status = 'ready' where id = $1", [id])
  await api.sql("update operations set state = 'succeeded' where tenant_id = $1", [id])
  return id
}
const responds = (...report: Parameters<typeof patroniReport>) => {
  api.engine.run = async () => ({ code: 0, stdout: `HTTP/1.0 200 OK\r\n\r\n${patroniReport(...report)}`, stderr: '' })
}
const post = (id: string, body?: object, headers: Record<string, string> = {}): Promise<ApiResponse> =>
  api.call('POST', `/v1/tenants/${id}/switchover`, { headers, ...(body === undefined ? {} : { body }) })
const storedOf = (id: string) =>
  api.sql("select kind, state, switchover, generation from operations where tenant_id = $1 and kind = 'switchover'", [
    id,
  ])

t.test('The tenant has a URL of its replicas, with the password where the other URL has it', async (t) => {
  const id = await cluster('replicas')
  const { body } = await api.call('GET', `/v1/tenants/${id}`)
  const { database_url: url, read_only_database_url: readOnly } = body as Record<string, string>
  t.match(readOnly, /^postgresql:\/\/t_[0-9a-f]{20}_admin@.+\/home_read_only$/)
  t.equal(readOnly, `${url ?? ''}_read_only`)
  const rotated = await api.call('POST', `/v1/tenants/${id}/database-password/rotate`)
  const urls = rotated.body as { database_url: string; read_only_database_url: string }
  t.match(urls.database_url, /_admin:[^@]{20,}@/)
  t.equal(urls.read_only_database_url, `${urls.database_url}_read_only`)
  const shared = await api.call('POST', '/v1/tenants', { body: { name: 'none', plan: 'Free', region: 'local' } })
  t.match(shared.body, { read_only_database_url: null })
})

t.test('Runtimes know the members of a cluster, and none of another database', async (t) => {
  const shared = await api.create()
  const id = await cluster('members')
  await api.sql('update tenants set home_version = 1 where id = $1', [id])
  const published = await api.published.some(new Set([id, shared.tenant_id]))
  const membersOf = (tenant: string) => published.find(({ tenantId }) => tenantId === tenant)?.manifest?.home.members
  t.same(membersOf(id), ['postgres-1:5432', 'postgres-2:5432', 'postgres-3:5432'])
  t.equal(membersOf(shared.tenant_id), undefined)
})

t.test('On several hosts, runtimes also know the members of the cluster that tenants share', async (t) => {
  const hosts = ['a', 'b', 'c'].map((id) => ({ id, bytes: 64 * 2 ** 30 }))
  const several = await startApi(t, { cloud: { hosts }, control: false })
  const body = { name: 'shared', plan: 'Free', region: 'cloud' }
  const { tenant_id: id } = (await several.call('POST', '/v1/tenants', { body })).body as { tenant_id: string }
  await several.sql('update tenants set home_version = 1 where id = $1', [id])
  const [published] = await several.published.some(new Set([id]))
  t.equal(published?.manifest?.home.members?.length, 3)
})

t.test('A switchover becomes an operation with the present primary and the requested one', async (t) => {
  responds()
  const id = await cluster('accepted')
  t.match(await post(id, { to: 'postgres-3' }), {
    status: 202,
    body: { generation: 2, operation: { kind: 'switchover', state: 'pending' } },
  })
  t.same(await storedOf(id), [
    { kind: 'switchover', state: 'pending', switchover: { from: 'postgres-1', to: 'postgres-3' }, generation: 2 },
  ])
  t.match(await post(id), { status: 423, body: { code: 'OPERATION_IN_PROGRESS' } })
  const snapshot = await api.reconcileStore.snapshot(id)
  t.match(snapshot?.operation, { switchover: { from: 'postgres-1', to: 'postgres-3' } })
  const [entry] = ((await api.call('GET', '/v1/audit?limit=1')).body as { entries: object[] }).entries
  t.match(entry, { action: 'tenant.switchover', target: id, detail: { from: 'postgres-1', to: 'postgres-3' } })
})

t.test('A repeated request with the same key receives the first response, whatever the cluster is then', async (t) => {
  responds()
  const id = await cluster('repeated')
  const headers = { 'idempotency-key': 'switch-once' }
  const first = await post(id, undefined, headers)
  t.match(first, { status: 202, body: { operation: { kind: 'switchover' } } })
  await api.sql("update operations set state = 'succeeded' where tenant_id = $1", [id])
  responds('postgres-2', { 'postgres-1': null, 'postgres-3': null })
  const second = await post(id, undefined, headers)
  t.equal(second.status, 202)
  t.same(second.body, first.body)
  t.match(second.headers, { 'idempotency-replayed': 'true' })
  t.equal((await storedOf(id)).length, 1)
})

t.test('A member that is the primary already needs no operation', async (t) => {
  responds('postgres-2')
  const id = await cluster('already')
  t.match(await post(id, { to: 'postgres-2' }), { status: 202, body: { generation: 1, operation: null } })
  t.same(await storedOf(id), [])
})

t.test("Without a healthy candidate it is rejected with each member's state", async (t) => {
  const id = await cluster('rejected')
  responds('postgres-1', { 'postgres-2': { state: 'starting' }, 'postgres-3': { role: 'replica', lag: 'unknown' } })
  const members = [
    { name: 'postgres-1', role: 'primary', state: 'running', lag_bytes: null, timeline: 1, synchronous: false },
    { name: 'postgres-2', role: 'replica', state: 'starting', lag_bytes: 0, timeline: 1, synchronous: true },
    { name: 'postgres-3', role: 'replica', state: 'streaming', lag_bytes: null, timeline: 1, synchronous: false },
  ]
  t.match(await post(id), {
    status: 409,
    body: { code: 'NO_CANDIDATE', message: 'No replica can become the primary at present.', members },
  })
  t.match(await post(id, { to: 'postgres-3' }), {
    status: 409,
    body: { code: 'NO_CANDIDATE', message: 'The member postgres-3 cannot become the primary at present.', members },
  })
  api.engine.run = async () => ({ code: 1, stdout: '', stderr: 'connection refused' })
  t.match(await post(id), {
    status: 409,
    body: { code: 'NO_CANDIDATE', members: [{ role: 'absent' }, { role: 'absent' }, { role: 'absent' }] },
  })
  api.engine.isReachable = false
  t.match(await post(id), { status: 503, body: { code: 'ENGINE_UNREACHABLE' } })
  api.engine.isReachable = true
  t.same(await storedOf(id), [])
})

t.test('Invalid requests are rejected before the cluster is read', async (t) => {
  api.engine.run = () => Promise.reject(new Error('the cluster was read'))
  const id = await cluster('invalid')
  for (const body of [{ to: 'postgres-4' }, { to: 1 }, { to: null }])
    t.match(
      await post(id, body),
      { status: 400, body: { code: 'INVALID_FIELD', message: /"to"/ } },
      JSON.stringify(body),
    )
  t.match(await post(id, { from: 'postgres-1' }), { status: 400, body: { code: 'UNKNOWN_FIELD' } })
  await api.sql("update tenants set desired = 'suspended' where id = $1", [id])
  t.match(await post(id), { status: 409, body: { code: 'NOT_ACTIVE' } })
  const shared = await api.call('POST', '/v1/tenants', { body: { name: 'shared', plan: 'Free', region: 'local' } })
  t.match(await post((shared.body as { tenant_id: string }).tenant_id), {
    status: 422,
    body: {
      code: 'UNSUPPORTED_ISOLATION',
      message:
        'A switchover requires a tenant with the isolation cluster-per-tenant. The isolation of this one is schema-per-tenant.',
    },
  })
  t.match(await post('t_00000000000000000000'), { status: 404, body: { code: 'TENANT_NOT_FOUND' } })
})

t.test('Sessions are read at the primary', async (t) => {
  const id = await cluster('sessions')
  const calls: string[] = []
  let primary = 'postgres-3'
  api.engine.run = async (service, [program = '']) => {
    calls.push(`${program.split('/').pop() ?? ''} ${service}`)
    const report = `HTTP/1.0 200 OK\r\n\r\n${patroniReport(primary)}`
    return { code: 0, stdout: program === 'timeout' ? '[]' : report, stderr: '' }
  }
  t.match(await api.call('GET', `/v1/tenants/${id}/sessions`), { status: 200, body: { sessions: [] } })
  t.same(calls, ['http-get postgres-1', 'timeout postgres-3'])
  primary = 'none'
  t.match(await api.call('GET', `/v1/tenants/${id}/sessions`), {
    status: 503,
    body: { code: 'UNAVAILABLE', message: "The tenant's cluster has no primary at present." },
  })
})

t.test('Logs are those of one of its services', async (t) => {
  const id = await cluster('logs')
  t.match(await api.call('GET', `/v1/tenants/${id}/logs?component=postgres`), {
    status: 400,
    body: {
      code: 'INVALID_PARAMETER',
      message:
        'Query parameter "component" must be one of the tenant\'s services: postgres-1, postgres-2, postgres-3, router-1, ' +
        'router-2, runtime-1, runtime-2.',
    },
  })
  t.match(await api.call('GET', `/v1/tenants/${id}/logs?component=router-1`), {
    status: 404,
    body: { code: 'SERVICE_NOT_FOUND' },
  })
})

t.test('It can be restarted, resized and paused, and has a schedule of backups', async (t) => {
  const settle = (id: string) => api.sql("update operations set state = 'succeeded' where tenant_id = $1", [id])
  const id = await cluster('changes')
  const path = `/v1/tenants/${id}`
  t.match(await api.call('POST', `${path}/restart`), { status: 202, body: { operation: { kind: 'restart' } } })
  await settle(id)
  const resources = { postgres: { memory_bytes: 2 ** 30 } }
  t.match(await api.call('PATCH', path, { body: { resources } }), { status: 200, body: { resources } })
  await settle(id)
  t.match(await api.call('PATCH', path, { body: { pause_after_seconds: 600 } }), { status: 200 })
  await settle(id)
  t.match(await api.call('POST', `${path}/pause`), { status: 202, body: { operation: { kind: 'pause' } } })
  await settle(id)
  const schedule = { backup_schedule: '5 3 * * *' }
  t.match(await api.call('PATCH', path, { body: schedule }), { status: 200, body: schedule })
})
