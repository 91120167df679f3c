// The repair of drift over the API: chosen fields or everything, as an operation that the audit log names.
import t from 'tap'
import { isError, newName, startApi } from '#test/support/control-plane/api.ts'
import { until } from '#test/support/until.ts'

interface DriftBody {
  differences: { component: string; field: string; repair: Record<string, unknown> }[]
}
interface Repaired {
  status: string
  drift_policy: string
  generation: number
  operation: { id: string; kind: string; state: string; step: string; error: string | null } | null
}

const api = await startApi(t, { cloud: true })
const wait = { prefer: 'wait=30' }

/** Creates a tenant with services of its own, whose drift stays. */
async function create(): Promise<string> {
  const { tenant_id: id } = await api.create(newName(), { plan: 'Pro', region: 'cloud' })
  await api.call('PATCH', `/v1/tenants/${id}`, { body: { drift_policy: 'report' }, headers: wait })
  return id
}

async function drift(id: string) {
  const { differences } = (await api.call('GET', `/v1/tenants/${id}/drift`)).body as DriftBody
  return differences
}

const fieldsOf = async (id: string) => (await drift(id)).map(({ component, field }) => `${component} ${field}`)

function containerOf(id: string, service: string) {
  const found = api.engine.stacks.get(id)?.containers.find(({ labels }) => labels.service === service)
  if (found === undefined) throw new Error(`no container of ${service}`)
  return found
}

function repair(id: string, fields?: { component: string; field: string }[], headers: Record<string, string> = wait) {
  const body = fields === undefined ? {} : { fields }
  return api.call('POST', `/v1/tenants/${id}/drift/repair`, { body, headers })
}

t.test('One field is repaired, and every other difference stays', async (t) => {
  const id = await create()
  const { generation } = await api.tenant(id)
  const runtime = containerOf(id, 'runtime')
  const { memoryBytes } = runtime.resources
  runtime.resources = { ...runtime.resources, memoryBytes: 5, pids: 6 }
  t.same(
    (await drift(id)).map(({ component, field, repair }) => ({ component, field, repair })),
    ['memory_bytes', 'pids'].map((field) => ({
      component: 'runtime',
      field,
      repair: { scope: 'field', components: ['runtime'], also: [], interrupts: false },
    })),
  )
  const { status, body } = await repair(id, [{ component: 'runtime', field: 'memory_bytes' }])
  const { operation, ...tenant } = body as Repaired
  t.equal(status, 202)
  t.match(operation, { kind: 'repair', state: 'succeeded', step: 'done', error: null })
  t.match(tenant, { status: 'ready', drift_policy: 'report', generation }, 'the policy and the specification stay')
  t.match(containerOf(id, 'runtime').resources, { memoryBytes, pids: 6 })
  t.same(await fieldsOf(id), ['runtime pids'])
  await until(async () => (await api.tenant(id)).conditions.some(({ type }) => type === 'Drift'), 'the reported rest')
  const { entries } = (await api.call('GET', '/v1/audit?limit=1')).body as { entries: object[] }
  t.match(entries, [{ action: 'tenant.repair', target: id, detail: { fields: ['runtime memory_bytes'] } }])
})

t.test('A field that no host can change alone names what is repaired with it', async (t) => {
  const id = await create()
  Object.assign(containerOf(id, 'postgres'), { health: 'unhealthy', restartPolicy: 'no' })
  Object.assign(containerOf(id, 'runtime'), { restartPolicy: 'no' })
  const [health] = (await drift(id)).filter(({ field }) => field === 'health')
  t.same(health?.repair, {
    scope: 'component',
    components: ['postgres'],
    also: [{ component: 'postgres', field: 'restart_policy' }],
    interrupts: true,
  })
  const { operation } = (await repair(id, [{ component: 'postgres', field: 'health' }])).body as Repaired
  t.match(operation, { state: 'succeeded' })
  t.same(await fieldsOf(id), ['runtime restart_policy'])
})

t.test('Without fields, everything is repaired, once', async (t) => {
  const id = await create()
  Object.assign(containerOf(id, 'postgres'), { restartPolicy: 'no' })
  Object.assign(containerOf(id, 'runtime'), { state: 'exited' })
  const { status, body } = await repair(id)
  t.equal(status, 202)
  t.match(body, { status: 'ready', drift_policy: 'report', operation: { kind: 'repair', state: 'succeeded' } })
  t.same(await fieldsOf(id), [])
  t.match((await repair(id)).body, { operation: null }, 'nothing is left to repair')
  Object.assign(containerOf(id, 'postgres'), { restartPolicy: 'no' })
  t.same(await fieldsOf(id), ['postgres restart_policy'], 'later drift is not repaired')
})

t.test('A repair that fails ends its operation with the reason', async (t) => {
  const id = await create()
  const stack = api.engine.stacks.get(id)
  if (stack === undefined) throw new Error('no stack')
  stack.volumes = stack.volumes.filter(({ name }) => !name.endsWith('-data'))
  const { operation } = (await repair(id, [{ component: 'volume/data', field: 'existence' }])).body as Repaired
  t.match(operation, { state: 'failed', error: /volume "data" and its data are gone/ })
})

t.test('The same idempotency key starts one repair', async (t) => {
  const id = await create()
  Object.assign(containerOf(id, 'runtime'), { restartPolicy: 'no' })
  const fields = [{ component: 'runtime', field: 'restart_policy' }]
  const headers = { ...wait, 'idempotency-key': newName() }
  const first = (await repair(id, fields, headers)).body as Repaired
  const second = (await repair(id, fields, headers)).body as Repaired
  t.equal(second.operation?.id, first.operation?.id)
})

t.test('Requests that name no difference are rejected', async (t) => {
  const id = await create()
  Object.assign(containerOf(id, 'runtime'), { restartPolicy: 'no' })
  const unknown = await repair(id, [{ component: 'runtime', field: 'memory_bytes' }])
  isError(t, unknown, 409, 'NOT_DRIFTED', 'runtime restart_policy', 'a field that does not differ')
  t.equal((await repair(id, [])).status, 400)
  const hostile = await repair(id, [{ component: '\u0000', field: '"; drop table' }])
  t.equal(hostile.status, 409)
  const shared = await api.create(newName())
  isError(t, await repair(shared.tenant_id), 422, 'NOT_DEDICATED', 'A repair of drift', 'a shared tenant')
  const read = await api.call('POST', `/v1/tenants/${id}/drift/repair`, { body: {}, key: api.keys.read })
  isError(t, read, 403, 'WRONG_SCOPE', 'admin', 'a key that only reads')
  api.engine.isReachable = false
  t.teardown(() => (api.engine.isReachable = true))
  t.equal((await repair(id)).status, 503)
})
