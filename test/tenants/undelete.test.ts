// A deleted tenant is served again, with everything that it had, until the removal of its data has begun.
import t from 'tap'
import type { OperationBody } from '#control-plane/tenants/tenant-body.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { isError, startApi } from '#test/support/control-plane/api.ts'
import { changed, newTenantBody } from './support/tenants.ts'

const api = await startApi(t)
const wait = { prefer: 'wait=30' }

const undelete = (id: string) => api.call('POST', `/v1/tenants/${id}/undelete`, { headers: wait })
const remove = async (id: string) => changed(await api.call('DELETE', `/v1/tenants/${id}`, { headers: wait }))
const published = async (id: string) => (await api.published.some(new Set([id])))[0]
const epoch = async () => BigInt(String((await api.sql('select epoch from installation'))[0]?.['epoch']))
const beginPurge = async (id: string, generation: number) =>
  api.reconcileStore.beginPurge(id, generation, await epoch())

t.test('An undeleted tenant has its name, keys, data and settings, and its SQL login is open', async (t) => {
  const tenant = await api.create()
  const id = tenant.tenant_id
  await query(tenant.database_url, 'create table notes (text text)')
  await query(tenant.database_url, "insert into notes values ('kept')")
  const rate = { per_second: 7, burst: 9 }
  await api.call('PATCH', `/v1/tenants/${id}`, { body: { rate_limit: rate, plan: 'Pro' }, headers: wait })
  const before = await published(id)
  await remove(id)
  t.equal((await published(id))?.route.phase, 'deleted')
  await t.rejects(query(tenant.database_url, 'select 1'), { code: '28000' }, 'its SQL login is closed')
  const taken = await api.call('POST', '/v1/tenants', { body: newTenantBody(tenant.name) })
  isError(t, taken, 409, 'NAME_TAKEN', tenant.name, 'its name cannot be taken meanwhile')

  const response = await undelete(id)
  t.match(response, {
    status: 202,
    body: {
      name: tenant.name,
      plan: 'Pro',
      status: 'ready',
      reason: null,
      purge_after: null,
      rate_limit: rate,
      operation: { kind: 'undelete', state: 'succeeded' },
    },
  })
  const after = await published(id)
  t.same(after?.route.phase, 'ready')
  t.match(after?.manifest?.keys, before?.manifest?.keys, 'its keys are valid')
  t.same(after?.manifest?.jwt_secrets, before?.manifest?.jwt_secrets)
  t.same(await query(tenant.database_url, 'select text from notes'), [{ text: 'kept' }])

  const { operations } = (await api.call('GET', `/v1/operations?tenant_id=${id}`)).body as {
    operations: OperationBody[]
  }
  t.same(
    operations.map(({ kind, state }) => `${kind} ${state}`),
    ['create succeeded', 'update succeeded', 'delete superseded', 'undelete succeeded'],
  )
  t.match(
    await api.sql("select type, data ->> 'name' as name from operator_events where tenant_id = $1 order by at, type", [
      id,
    ]),
    [{ type: 'tenant.ready' }, { type: 'tenant.undeleted', name: tenant.name }, { type: 'tenant.ready' }],
  )
  t.match(await api.sql("select actor from audit_log where target = $1 and action = 'tenant.undelete'", [id]), [
    { actor: /./ },
  ])

  const again = await undelete(id)
  t.match(again, { status: 202, body: { generation: changed(response).generation, operation: null } }, 'a repeat')
})

t.test('A suspended tenant is suspended again, and a second deletion has a grace time of its own', async (t) => {
  const tenant = await api.create()
  const id = tenant.tenant_id
  const body = { suspended: true, suspend_reason: 'not paid', payment_required: true }
  await api.call('PATCH', `/v1/tenants/${id}`, { body, headers: wait })
  const first = await remove(id)
  await remove(id)
  t.match(await undelete(id), {
    body: {
      status: 'suspended',
      suspend_reason: 'not paid',
      payment_required: true,
      operation: { state: 'succeeded' },
    },
  })
  t.equal((await published(id))?.route.phase, 'suspended')
  await t.rejects(query(tenant.database_url, 'select 1'), { code: '28000' }, 'its SQL login stays closed')
  api.clock.ahead = 60_000
  t.ok(Date.parse((await remove(id)).purge_after ?? '') >= Date.parse(first.purge_after ?? '') + 60_000)
  api.clock.ahead = 0
})

t.test('A tenant whose grace time is over cannot be undeleted, and its data is removed', async (t) => {
  const { tenant_id: id } = await api.create()
  const { purge_after: due } = await remove(id)
  api.region.agrees = false
  api.clock.ahead = Date.parse(due ?? '') - Date.now() + 1000
  isError(t, await undelete(id), 410, 'TENANT_PURGED', due ?? '', 'after the grace time')
  api.region.agrees = true
  await until(async () => (await api.call('GET', `/v1/tenants/${id}`)).status === 404, 'the removal')
  api.clock.ahead = 0
  isError(t, await undelete(id), 404, 'TENANT_NOT_FOUND', 'tenant', 'after the removal')
  isError(t, await undelete('t_x'), 404, 'TENANT_NOT_FOUND', 'tenant', 'an invalid ID')
})

t.test('Of an undelete and the begin of a purge at the same time, exactly one succeeds', async (t) => {
  const outcomes = new Set<string>()
  for (let round = 0; round < 12; round++) {
    const { tenant_id: id } = await api.create()
    const { generation } = await remove(id)
    // The later the purge begins, the more often it is too late.
    const late = async () => {
      for (let query = 0; query < round; query++) await api.sql('select 1')
      return beginPurge(id, generation)
    }
    const [{ status }, begun] = await Promise.all([undelete(id), late()])
    outcomes.add(`${status} ${begun}`)
    t.equal(status === 202, !begun, `${status}, purge begun: ${begun}`)
    t.equal((await published(id))?.route.phase, begun ? 'deleted' : 'ready')
    if (status === 202) t.equal(await beginPurge(id, generation), false, 'a late purge begins no more')
  }
  t.comment([...outcomes].join(', '))
})

t.test('A tenant that was deleted before its data was restored cannot be undeleted', async (t) => {
  const { tenant_id: id } = await api.create()
  await remove(id)
  await api.sql("update tenants set desired_before_delete = 'restoring' where id = $1", [id])
  isError(t, await undelete(id), 409, 'NOT_ACTIVE', 'Restore its backup', 'an incomplete restore')
})

t.test('A tenant that an earlier release deleted is undeleted, too', async (t) => {
  const { tenant_id: id } = await api.create()
  await remove(id)
  await api.sql('update tenants set desired_before_delete = null where id = $1', [id])
  t.match(await undelete(id), { status: 202, body: { status: 'ready' } })
})

t.test('No call failed with an internal error', async (t) => {
  t.same(
    api.log.filter((line) => line.includes('The request failed.')),
    [],
  )
})
