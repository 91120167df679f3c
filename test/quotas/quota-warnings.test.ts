// Warnings at 80 % and 100 % of a quota: in the operators' outbox, once for each tenant, resource and month.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { systemClock } from '#control-plane/platform/clock.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { createQuotaWatchStore } from '#control-plane/quotas/store-watch.ts'
import { createQuotaWatch } from '#control-plane/quotas/jobs.ts'
import { startApi } from '#test/support/control-plane/api.ts'
import { leaseCall } from './support/gateways.ts'

const api = await startApi(t)
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())
const clock = { ...systemClock, now: () => now }
const watch = createQuotaWatch({
  store: createQuotaWatchStore(database, () => now),
  clock,
  log: { warn: () => undefined },
})
let now = new Date('2026-05-10T12:00:00Z')

const reported = async (id: string) =>
  (
    await api.sql(
      `select type, data->>'resource' as resource, data->>'used' as used, data->>'limit' as limit,
        data->>'month' as month, data->>'resets_at' as resets from operator_events
        where tenant_id = $1 and type like 'quota.%' order by at, resource, type desc`,
      [id],
    )
  ).map(({ type, resource, used, limit, month, resets }) => [type, resource, used, limit, month, resets])

async function use(id: string, used: number, month: string): Promise<void> {
  await api.sql(
    'insert into request_leases (tenant_id, month, source, boot, granted, used) values ($1, $2, $3, $4, $5, $5)',
    [id, month, 'gateway-0', randomUUID(), used],
  )
}

async function store(id: string, documents: number, files: number): Promise<void> {
  await api.sql(
    `insert into home_readings (tenant_id, books, read_at, document_bytes, file_bytes, document_byte_seconds, file_byte_seconds)
    values ($1, $2, now(), $3, $4, 0, 0)
    on conflict (tenant_id) do update set document_bytes = excluded.document_bytes, file_bytes = excluded.file_bytes`,
    [id, randomUUID(), documents, files],
  )
}

t.test('Requests warn at 80 % and at 100 % over all gateways together, again in each month', async (t) => {
  const { tenant_id: id } = await api.create()
  await use(id, 4_000, '2026-05-01')
  await use(id, 3_999, '2026-05-01')
  await watch.poll()
  t.same(await reported(id), [], 'one request before the warning')
  await use(id, 1, '2026-05-01')
  await watch.poll()
  await watch.poll()
  const warning = ['quota.warning', 'api_requests', '8000', '10000', '2026-05', '2026-06-01T00:00:00.000Z']
  t.same(await reported(id), [warning])
  await use(id, 2_000, '2026-05-01')
  now = new Date('2026-05-11T12:00:00Z')
  await watch.poll()
  const reached = ['quota.reached', 'api_requests', '10000', '10000', '2026-05', '2026-06-01T00:00:00.000Z']
  t.same(await reported(id), [warning, reached])
  now = new Date('2026-06-02T12:00:00Z')
  await watch.poll()
  t.same((await reported(id)).length, 2)
  await use(id, 9_000, '2026-06-01')
  await watch.poll()
  t.same((await reported(id)).at(-1), [
    'quota.warning',
    'api_requests',
    '9000',
    '10000',
    '2026-06',
    '2026-07-01T00:00:00.000Z',
  ])
})

t.test('Documents and files warn by the last reading, to the byte, and at both levels at once', async (t) => {
  const { tenant_id: id } = await api.create()
  await store(id, 399_999_999, 799_999_999)
  await watch.poll()
  t.same(await reported(id), [])
  await store(id, 400_000_000, 1_000_000_000)
  await watch.poll()
  await watch.poll()
  t.same(await reported(id), [
    ['quota.warning', 'documents', '400000000', '500000000', null, null],
    ['quota.warning', 'files', '1000000000', '1000000000', null, null],
    ['quota.reached', 'files', '1000000000', '1000000000', null, null],
  ])
})

t.test('An unlimited plan has no warnings', async (t) => {
  const { tenant_id: id } = await api.create(undefined, { plan: 'Enterprise' })
  await use(id, 10 ** 9, '2026-06-01')
  await store(id, 10 ** 15, 10 ** 15)
  await watch.poll()
  t.same(await reported(id), [])
})

t.test('Leases are deleted two months after their month', async (t) => {
  const { tenant_id: id } = await api.create()
  for (const month of ['2026-04-01', '2026-05-01', '2026-06-01']) await use(id, 1, month)
  await watch.poll()
  t.same(
    (await api.sql('select month::text from request_leases where tenant_id = $1 order by month', [id])).map(
      ({ month }) => month,
    ),
    ['2026-05-01', '2026-06-01'],
  )
})

t.test('Connections warn by the peak over all gateways in the month, also after they are closed', async (t) => {
  const { tenant_id: id } = await api.create()
  api.clock.ahead = now.getTime() - Date.now()
  t.teardown(() => (api.clock.ahead = 0))
  let sequence = 0
  /** A gateway has `keep` connections open, and admits `more`. */
  const open = (nth: number, keep: number, more: number) =>
    leaseCall(api, {
      source: `gateway-${nth}`,
      boot: `00000000-0000-4000-8000-00000000000${nth}`,
      sequence: ++sequence,
      slots: [{ tenant_id: id, open: keep, keep, ask: more, waiting: more }],
    })
  await open(1, 0, 50)
  await open(2, 0, 29)
  await watch.poll()
  t.same(await reported(id), [], 'one connection before the warning')
  await open(2, 29, 1)
  await open(2, 3, 0)
  await watch.poll()
  await watch.poll()
  const warning = ['quota.warning', 'realtime_connections', '80', '100', null, null]
  t.same(await reported(id), [warning], 'although most are closed again')
  await open(1, 50, 47)
  await watch.poll()
  await watch.poll()
  const reached = ['quota.reached', 'realtime_connections', '100', '100', null, null]
  t.same(await reported(id), [warning, reached])
  now = new Date('2026-07-02T12:00:00Z')
  await watch.poll()
  t.equal((await reported(id)).length, 2, 'a new month begins with no warning')
  await api.sql("update tenants set plan_id = 'Pro' where id = $1", [id])
  await api.sql(
    "update connection_budgets set peak = 9000, peak_limit = 10000, peak_month = '2026-07-01' where tenant_id = $1",
    [id],
  )
  await api.sql("update tenants set plan_id = 'Free' where id = $1", [id])
  await watch.poll()
  t.equal((await reported(id)).length, 2, 'the peak under a larger plan does not count for this one')
})
