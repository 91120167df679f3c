// The outbox of operators' webhooks: an event exists exactly when the transaction of its cause commits.
import t from 'tap'
import { openDatabase } from '#control-plane/platform/database.ts'
import { emitOperatorEvent } from '#control-plane/webhooks/store-events.ts'
import type { OperatorEvent } from '#control-plane/webhooks/operator-event.ts'
import { until } from '#test/support/until.ts'
import { startApi } from '#test/support/control-plane/api.ts'

const api = await startApi(t)
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())

const reported = async (tenantId: string) =>
  (await api.sql('select type, data from operator_events where tenant_id = $1 order by at, id', [tenantId])) as {
    type: string
    data: Record<string, unknown>
  }[]
const types = async (tenantId: string) => (await reported(tenantId)).map(({ type }) => type)

t.test(
  'A tenant that becomes ready, is suspended or is resumed emits one event each, with name, plan and reason',
  async (t) => {
    const { tenant_id: id, name } = await api.create()
    t.same(await reported(id), [
      {
        type: 'tenant.ready',
        data: {
          tenant_id: id,
          name,
          plan: 'Free',
          region: 'local',
          status: 'ready',
          previous_status: 'pending',
          reason: null,
        },
      },
    ])
    const headers = { prefer: 'wait=30' }
    await api.call('PATCH', `/v1/tenants/${id}`, {
      body: { suspended: true, suspend_reason: 'unpaid since May' },
      headers,
    })
    await api.call('PATCH', `/v1/tenants/${id}`, { body: { suspend_reason: 'unpaid since April' }, headers })
    await api.call('PATCH', `/v1/tenants/${id}`, { body: { suspended: false }, headers })
    const events = await reported(id)
    t.same(
      events.map(({ type }) => type),
      ['tenant.ready', 'tenant.suspended', 'tenant.ready'],
    )
    t.match(events[1]?.data, { status: 'suspended', previous_status: 'ready', reason: 'unpaid since May' })
  },
)

t.test('A tenant that fails repeatedly emits one event, and another when it is ready again', async (t) => {
  const { tenant_id: id } = await api.create()
  api.region.agrees = false
  t.teardown(() => (api.region.agrees = true))
  const epoch = BigInt(String((await api.sql('select epoch from installation'))[0]?.['epoch']))
  const failed = {
    generation: 1,
    status: 'failed' as const,
    reason: 'the gateway does not respond',
    conditions: [],
    operation: undefined,
  }
  await api.reconcileStore.recordObserved(id, failed, epoch)
  await api.reconcileStore.recordObserved(id, failed, epoch)
  t.same(await types(id), ['tenant.ready', 'tenant.failed'])
  t.match((await reported(id))[1]?.data, {
    status: 'failed',
    previous_status: 'ready',
    reason: 'the gateway does not respond',
  })
  api.region.agrees = true
  await until(async () => (await types(id)).length === 3, 'the event of a tenant that is ready again')
  t.same((await types(id)).at(-1), 'tenant.ready')
})

t.test('A waking tenant emits no event', async (t) => {
  const { tenant_id: id } = await api.create()
  const epoch = BigInt(String((await api.sql('select epoch from installation'))[0]?.['epoch']))
  const seen = { generation: 1, reason: null, conditions: [], operation: undefined }
  await api.reconcileStore.recordObserved(id, { ...seen, status: 'paused' }, epoch)
  await api.reconcileStore.recordObserved(id, { ...seen, status: 'ready' }, epoch)
  t.same(await types(id), ['tenant.ready'])
})

t.test('A former leader emits no event', async (t) => {
  const { tenant_id: id } = await api.create()
  const seen = { generation: 1, status: 'failed' as const, reason: 'made up', conditions: [], operation: undefined }
  await t.rejects(api.reconcileStore.recordObserved(id, seen, 0n), /leads/)
  t.same(await types(id), ['tenant.ready'])
})

t.test('An event exists exactly when its transaction committed, and only once with its key', async (t) => {
  const { tenant_id: tenantId } = await api.create()
  const event: OperatorEvent = {
    type: 'quota.warning',
    tenantId,
    data: {
      tenant_id: tenantId,
      resource: 'api_requests',
      percent: 80,
      used: '8000',
      limit: '10000',
      month: '2026-11',
      resets_at: '2026-12-01T00:00:00.000Z',
    },
  }
  const once = `quota:${tenantId}:api_requests:2026-11:80`
  await t.rejects(
    database.$transaction(async (transaction) => {
      t.equal(await emitOperatorEvent(transaction, event, new Date(), once), true)
      throw new Error('rolled back')
    }),
    /rolled back/,
  )
  t.same(await types(tenantId), ['tenant.ready'])
  const written = await Promise.all(
    Array.from({ length: 5 }, () =>
      database.$transaction((transaction) => emitOperatorEvent(transaction, event, new Date(), once)),
    ),
  )
  t.same(written.filter(Boolean).length, 1)
  t.match(await reported(tenantId), [{ type: 'tenant.ready' }, { type: 'quota.warning', data: event.data }])
  t.equal(
    await emitOperatorEvent(database, { ...event, data: { ...event.data, resource: 'egress' } }, new Date()),
    true,
    'without a key it is written each time',
  )
  t.equal(
    await emitOperatorEvent(database, { ...event, data: { ...event.data, resource: 'egress' } }, new Date()),
    true,
  )
})
