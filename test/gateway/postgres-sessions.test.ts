// Sessions through the Postgres proxy with a real Postgres and real clients: queries, cancellation, counts, ends and TLS.
import { randomBytes } from 'node:crypto'
import type { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type pg from 'pg'
import t from 'tap'
import { query, startPostgres, type TestPostgres } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { selfSigned } from './support/certificate.ts'
import { startSetting } from './support/gateway.ts'
import { activityOf, proxyOf, withProxy } from './support/postgres-proxy.ts'
import { addRealTenant, connected, endOf } from './support/real-tenant.ts'
import { cancelRequest, errorFields, exchange, sslRequest, startup } from './support/sql-wire.ts'

t.test('With a real Postgres', async (t) => {
  const server = await startPostgres()
  t.teardown(() => server.stop())
  const setting = await startSetting(t, withProxy)
  const { route, login } = await addRealTenant(setting, server, 'acme')
  const other = await addRealTenant(setting, server, 'other')

  t.test("A tenant's admin works in its database", async (t) => {
    const client = await connected(t, login)
    t.same((await client.query<{ current_user: string }>('select current_user')).rows, [
      { current_user: `${route.tenant_id}_admin` },
    ])
    await client.query('create temporary table notes (n int, text text)')
    await client.query('insert into notes select n, repeat($1, 1000) from generate_series(1, 5000) n', ['é'])
    const { rows } = await client.query<{ n: number; text: string }>('select * from notes order by n')
    t.equal(rows.length, 5000)
    t.equal(rows[4999]?.text, 'é'.repeat(1000))
    await t.rejects(client.query('select nonsense'), { code: '42703' }, 'errors pass')
    t.same((await client.query('select 1 as one')).rows, [{ one: 1 }])
  })

  t.test('Postgres rejects a wrong password', async (t) => {
    await t.rejects(connected(t, { ...login, password: 'wrong' }), { code: '28P01' })
    await t.rejects(connected(t, { ...login, password: other.login.password }), { code: '28P01' })
  })

  t.test('A query is cancelled only by its own key', async (t) => {
    const client = await connected(t, login)
    const bystander = await connected(t, other.login)
    const key = keyOf(client)
    const sleeping = bystander.query('select pg_sleep(60)')
    const cancelled = t.rejects(client.query('select pg_sleep(60)'), { code: '57014' })
    await untilSleeping(server, 2)
    t.equal(
      (await exchange(proxyOf(setting), cancelRequest(Buffer.concat([key.subarray(0, 4), randomBytes(4)])))).length,
      0,
    )
    t.equal(await sleepers(server), 2, 'a wrong secret does nothing')
    t.equal((await exchange(proxyOf(setting), cancelRequest(key))).length, 0)
    await cancelled
    t.equal(await sleepers(server), 1)
    const bystanderKey = keyOf(bystander)
    const ended = t.rejects(sleeping, { code: '57014' })
    await exchange(proxyOf(setting), cancelRequest(bystanderKey))
    await ended
    await client.end()
    await until(async () => (await activityOf(setting, route.tenant_id))?.open === 0)
    t.equal((await exchange(proxyOf(setting), cancelRequest(key))).length, 0, 'the key of a session that has ended')
  })

  t.test('Sessions count as connections and activity, and their bytes as egress', async (t) => {
    const { route, login } = await addRealTenant(setting, server, 'counted')
    const count = (meter: string) =>
      setting.control.total((counter) => counter.meter === meter && counter.tenant_id === route.tenant_id)
    const first = await connected(t, login)
    await connected(t, login)
    t.equal((await activityOf(setting, route.tenant_id))?.open, 2)
    await first.query('select repeat($1, 100000)', ['x'])
    await until(() => count('connections_peak') === 2 && count('egress_bytes') > 100_000)
    t.equal(count('requests'), 0)
    await first.end()
    await until(async () => (await activityOf(setting, route.tenant_id))?.open === 1)
  })

  t.test('A session beyond the limit is rejected after its password, as clients expect', async (t) => {
    const narrow = await startSetting(t, { ...withProxy, limits: { sqlSessionsPerTenant: 1 } })
    const { login } = await addRealTenant(narrow, server, 'narrow')
    const client = await connected(t, login)
    await t.rejects(connected(t, login), { code: '53300', message: 'Too many sessions are already open.' })
    await t.rejects(connected(t, { ...login, password: 'wrong' }), { code: '28P01' })
    t.same((await client.query('select 1 as one')).rows, [{ one: 1 }])
    await until(
      async () =>
        (await query(server.url('postgres'), 'select 1 from pg_stat_activity where usename = $1', [login.user]))
          .length === 1,
      'no session remains',
    )
  })

  t.test('The sessions of a suspended or deleted tenant end, and no others', async (t) => {
    const { route, login } = await addRealTenant(setting, server, 'ending')
    const bystander = await connected(t, other.login)
    for (const [generation, phase] of [
      [2, 'suspended'],
      [4, 'deleted'],
    ] as const) {
      await setting.put({ ...route, generation: generation - 1 })
      const client = await connected(t, login)
      const ended = endOf(client)
      await setting.put({ ...route, generation, phase, reason: 'unpaid' })
      await ended
      await t.rejects(
        connected(t, login),
        phase === 'suspended' ? { code: '28000', message: 'The tenant is suspended: unpaid' } : { code: '28000' },
      )
    }
    t.same((await bystander.query('select 1 as one')).rows, [{ one: 1 }])
    await until(
      async () =>
        (await query(server.url('postgres'), 'select 1 from pg_stat_activity where usename = $1', [login.user]))
          .length === 0,
    )
  })

  t.test('A proxy with a certificate requires TLS', async (t) => {
    const secure = await startSetting(t, { postgres: { port: 0, tls: selfSigned() } })
    const { login } = await addRealTenant(secure, server, 'secure')
    const client = await connected(t, { ...login, ssl: { rejectUnauthorized: false } })
    const { stream } = (client as unknown as { connection: { stream: Socket } }).connection
    t.ok(stream instanceof TLSSocket && stream.encrypted)
    const { rows } = await client.query<{ text: string }>('select repeat($1, 1000000) as text', ['s'])
    t.equal(rows[0]?.text.length, 1_000_000)
    await t.rejects(connected(t, login), { code: '28000', message: /sslmode=require/ })
    const key = keyOf(client)
    const cancelled = t.rejects(client.query('select pg_sleep(60)'), { code: '57014' })
    await untilSleeping(server, 1)
    await exchange(proxyOf(secure), cancelRequest(key))
    await cancelled
    const early = await exchange(proxyOf(secure), Buffer.concat([sslRequest, startup(['user', login.user])]))
    t.equal(errorFields(early)['C'], '08P01', 'bytes before the response to an SSLRequest are rejected')
    const ended = endOf(client)
    await secure.gateway.stop()
    await ended
  })
})

/** Returns the process ID and the secret that the client received. */
function keyOf(client: pg.Client): Buffer {
  const { processID, secretKey } = client as unknown as { processID: number; secretKey: number }
  const key = Buffer.alloc(8)
  key.writeInt32BE(processID, 0)
  key.writeInt32BE(secretKey, 4)
  return key
}

async function sleepers(server: TestPostgres): Promise<number> {
  return (
    await query(
      server.url('postgres'),
      "select 1 from pg_stat_activity where state = 'active' and query like 'select pg_sleep%'",
    )
  ).length
}

function untilSleeping(server: TestPostgres, count: number): Promise<void> {
  return until(async () => (await sleepers(server)) === count, 'the sleep')
}
