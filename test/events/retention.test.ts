// How long events are stored, and the error for subscribers who were disconnected for longer.
import pg from 'pg'
import t from 'tap'
import { internalPaths } from '@tenantry/contract'
import { until } from '#test/support/until.ts'
import { EventReader } from '#test/support/event-reader.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'

const follow = (tenant: TestTenant, last: string) =>
  EventReader.open(tenant, '/events/v1', { ...tenant.as('service'), 'last-event-id': last })

const event = (tenant: TestTenant, name: string) =>
  tenant.rows("insert into event_log (type, payload) values ('test', jsonb_build_object('name', $1::text))", [name])

/** Writes this many events to the log, the first `old` of them older than the retention period. */
async function log(tenant: TestTenant, { events, old }: { events: number; old: number }): Promise<void> {
  for (let number = 1; number <= events; number++) await event(tenant, `event-${number}`)
  await tenant.rows("update event_log set created_at = now() - interval '8 days' where seq <= $1", [old])
}

const numbers = async (tenant: TestTenant) =>
  (await tenant.rows('select seq::int as seq from event_log order by seq')).map(({ seq }) => seq)
const goneUpTo = async (tenant: TestTenant) =>
  (await tenant.rows('select up_to::int as up_to from event_log_gone'))[0]?.['up_to']

t.test('Events are retained for a limited time and size', async (t) => {
  const runtime = await startRuntime(t, {
    pace: { heartbeat: 100, timeout: 500, drainTimeout: 20_000, retryDelay: 50 },
  })

  t.test('Events older than a week are deleted in batches, and the rest remains', async (t) => {
    const tenant = await runtime.addTenant()
    await log(tenant, { events: 9, old: 7 })
    t.equal(await runtime.trimEvents(tenant.id, { batch: 3 }), 7)
    t.same([await numbers(tenant), await goneUpTo(tenant)], [[8, 9], 7])
    t.equal(await runtime.trimEvents(tenant.id, { batch: 3 }), 0, 'nothing remains to be deleted')
    await event(tenant, 'one-more')
    t.same([await numbers(tenant), await goneUpTo(tenant)], [[8, 9, 10], 7])
  })

  t.test('Beyond the maximum size the oldest events are deleted', async (t) => {
    const tenant = await runtime.addTenant()
    await tenant.rows(
      `insert into event_log (type, payload) select 'test', jsonb_build_object('n', n, 'x', repeat(md5(n::text), 30))
        from generate_series(1, 1000) n`,
    )
    t.equal(await runtime.trimEvents(tenant.id, { bytes: 10_000_000 }), 0)
    const removed = await runtime.trimEvents(tenant.id, { bytes: 50_000, batch: 100 })
    const stored = await numbers(tenant)
    t.equal(stored.length + removed, 1000)
    t.same(
      stored,
      Array.from({ length: stored.length }, (_, n) => removed + n + 1),
      'the newest remain',
    )
    const [{ bytes } = { bytes: 0 }] = await tenant.rows(
      'select sum(pg_column_size(payload) + 100)::int as bytes from event_log',
    )
    t.ok(Number(bytes) <= 50_000 && Number(bytes) > 40_000, `${String(bytes)} bytes are stored`)
  })

  t.test('A subscriber who missed deleted events receives 410; one who missed none resumes', async (t) => {
    const tenant = await runtime.addTenant()
    await log(tenant, { events: 6, old: 4 })
    await runtime.trimEvents(tenant.id, {})
    const rejected = await tenant.request('GET', '/events/v1', { as: 'service', headers: { 'last-event-id': '3' } })
    t.match({ status: rejected.status, ...rejected.json() }, { status: 410, code: 'EVENTS_GONE' })
    const reader = await follow(tenant, '4')
    t.same(
      (await reader.until(2)).map(({ data }) => data['name']),
      ['event-5', 'event-6'],
    )
    reader.leave()
  })

  t.test('A connected subscriber who has not received a deleted event yet receives EVENTS_GONE', async (t) => {
    const tenant = await runtime.addTenant()
    await log(tenant, { events: 2, old: 0 })
    const reader = await follow(tenant, '2')
    // Events after an open transaction wait for it.
    const slow = new pg.Client({ connectionString: tenant.home.adminUrl })
    await slow.connect()
    await slow.query("begin; insert into event_log (type, payload) values ('test.slow', '{}')")
    for (const name of ['late-4', 'late-5']) await event(tenant, name)
    await tenant.rows("update event_log set created_at = now() - interval '8 days' where seq <= 4")
    t.equal(await runtime.trimEvents(tenant.id, {}), 3)
    await slow.query('commit')
    await slow.end()
    t.match((await reader.untilOver()).at(-1), { event: 'end', data: { code: 'EVENTS_GONE' } })
  })

  t.test('Events are trimmed when the home is read, at most once an hour', async (t) => {
    const tenant = await runtime.addTenant()
    await log(tenant, { events: 3, old: 2 })
    const readHome = async () => {
      const { status } = await tenant.request('GET', internalPaths.tenantRecords(tenant.id))
      t.equal(status, 200)
    }
    await readHome()
    await until(async () => (await numbers(tenant)).length === 1)
    await tenant.rows("update event_log set created_at = now() - interval '8 days'")
    await readHome()
    runtime.clock.ahead = 3_600_000
    await readHome()
    await until(async () => (await numbers(tenant)).length === 0)
    t.equal(await goneUpTo(tenant), 3)
    t.same(runtime.errors, [])
  })

  t.test('No caller can delete newer events', async (t) => {
    const tenant = await runtime.addTenant()
    await log(tenant, { events: 2, old: 2 })
    for (const caller of ['service', 'ada'])
      t.equal(
        (await tenant.request('DELETE', '/rest/v1/event_log?seq=gt.0', { as: caller })).status >= 400,
        true,
        caller,
      )
    const client = new pg.Client({ connectionString: tenant.home.url })
    await client.connect()
    for (const role of ['service_role', 'authenticated', '']) {
      await client.query('begin')
      await client.query("select set_config('app.tenant_id', $1, true), set_config('app.role', $2, true)", [
        tenant.id,
        role,
      ])
      t.equal((await client.query('delete from event_log')).rowCount, 0, role)
      await client.query('rollback')
    }
    await client.end()
    t.same(await numbers(tenant), [1, 2])
  })
})
