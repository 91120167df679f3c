// The single round trip in which all statements of a caller run.
import t from 'tap'
import { Connections, defaultConnectionLimits } from '#tenant-runtime/database/connections.ts'
import { ScopedDatabase } from '#tenant-runtime/database/scoped-database.ts'
import { sql } from '#tenant-runtime/database/statement.ts'
import { isoTime } from '#tenant-runtime/database/column-parsers.ts'
import { RoundTripError } from '#tenant-runtime/database/round-trip-error.ts'
import type { RlsContext } from '#tenant-runtime/tenancy/rls-context.ts'
import { createHome } from '#test/support/home.ts'
import { query, startPostgres } from '#test/support/postgres.ts'

const service: RlsContext = { role: 'service', reason: 'test' }
const user: RlsContext = { role: 'authenticated', userId: 'u1', claims: '{"sub":"u1"}' }

t.test('Statements of a tenant share a round trip', async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  const home = await createHome(postgres)
  const open = (limits: Partial<typeof defaultConnectionLimits> = {}) => {
    const connections = new Connections({ ...defaultConnectionLimits, ...limits })
    const database = new ScopedDatabase(connections, { tenantId: home.tenantId, url: home.url, ddlUrl: home.ddl_url })
    return { connections, database }
  }
  const settings =
    "select current_setting('app.tenant_id', true) as tenant, current_setting('app.role', true) as role," +
    " current_setting('app.user_id', true) as user_id, current_setting('request.jwt.claims', true) as claims"

  t.test('Statements run in the context of their caller', async (t) => {
    const { connections, database } = open()
    t.teardown(() => connections.close())
    const { rows } = await database.query(user, settings)
    t.same(rows, [{ tenant: home.tenantId, role: 'authenticated', user_id: 'u1', claims: '{"sub":"u1"}' }])
  })

  t.test('Statements are one transaction: an error in the last undoes the first', async (t) => {
    const { connections, database } = open()
    t.teardown(() => connections.close())
    const insert = sql("insert into schemas (name, fields, rls_policy) values ('undone', '[]', '{}')")
    const error = await database.run(service, insert, sql('select 1 / $1::int', 0)).then(
      () => undefined,
      (error: unknown) => error,
    )
    t.type(error, RoundTripError)
    t.equal((error as RoundTripError).sqlstate, '22012')
    const { rows } = await database.query(service, "select name from schemas where name = 'undone'")
    t.same(rows, [])
  })

  t.test(
    'Statements leave no role and no claim on the connection, after success and after each kind of error',
    async (t) => {
      const { connections, database } = open({ total: 1, perTenant: 1 })
      t.teardown(() => connections.close())
      const failures = [
        'select 1 / 0',
        'select nonsense',
        'selec',
        "select 'x'::int",
        'insert into event_log (type, payload) values (null, null)',
      ]
      for (const text of ['select 1', ...failures]) {
        await database.query(user, text).catch((error: unknown) => {
          if (!(error instanceof RoundTripError)) throw error
        })
        const connection = await connections.acquire({ tenantId: home.tenantId, url: home.url })
        const { rows } = await connection.client.query(settings)
        connections.release({ tenantId: home.tenantId, url: home.url }, connection, true)
        const [row] = rows as Record<string, string | null>[]
        t.same(
          Object.values(row ?? {}).filter((value) => value !== null && value !== ''),
          [],
          text,
        )
      }
    },
  )

  t.test('Statements succeed after errors in new and in prepared statements', async (t) => {
    const { connections, database } = open({ total: 1, perTenant: 1 })
    t.teardown(() => connections.close())
    const divide = 'select 10 / $1::int as x'
    await t.rejects(database.query(service, divide, 0))
    t.same((await database.query(service, divide, 5)).rows, [{ x: 2 }])
    await t.rejects(database.query(service, divide, 0))
    t.same((await database.query(service, divide, 2)).rows, [{ x: 5 }])
    t.equal(connections.load.open, 1, 'the connection was reused')
  })

  t.test('Statements are prepared again after a change of their table', async (t) => {
    const { connections, database } = open({ total: 1, perTenant: 1 })
    t.teardown(() => connections.close())
    await query(home.adminUrl, 'create table changing (a int); insert into changing values (1)')
    t.same((await database.query(service, 'select * from changing')).rows, [{ a: 1 }])
    await query(home.adminUrl, 'alter table changing add column b int')
    t.same((await database.query(service, 'select * from changing')).rows, [{ a: 1, b: null }])
  })

  t.test('More statements than a connection keeps prepared still work', async (t) => {
    const { connections, database } = open({ total: 1, perTenant: 1 })
    t.teardown(() => connections.close())
    for (let round = 0; round < 2; round++) {
      for (let n = 0; n < 300; n++) t.same((await database.query(service, `select ${n} as n`)).rows[0], { n })
    }
    const { rows } = await database.query(service, 'select count(*) as n from pg_prepared_statements')
    t.ok(Number(rows[0]?.['n']) <= 257, `${String(rows[0]?.['n'])} are prepared`)
  })

  t.test('A killed connection fails its statement and is replaced', async (t) => {
    const { connections, database } = open({ total: 2, perTenant: 2 })
    t.teardown(() => connections.close())
    const { rows } = await database.query(service, 'select pg_backend_pid() as pid')
    await query(postgres.url('postgres'), 'select pg_terminate_backend($1)', [rows[0]?.['pid']])
    await t.rejects(database.query(service, 'select pg_terminate_backend(pg_backend_pid())'))
    t.same((await database.query(service, 'select 1 as one')).rows, [{ one: 1 }])
  })

  t.test('Statements wait for a connection, and are rejected when the queue is full', async (t) => {
    const { connections, database } = open({ total: 2, perTenant: 2, maxWaiting: 20, waitMilliseconds: 10_000 })
    t.teardown(() => connections.close())
    const outcomes = await Promise.allSettled(
      Array.from({ length: 30 }, () => database.query(service, 'select pg_sleep(0.02)')),
    )
    t.equal(outcomes.filter((outcome) => outcome.status === 'fulfilled').length, 22)
    const codes = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [(outcome.reason as { code: string }).code] : [],
    )
    t.same(new Set(codes), new Set(['DATABASE_BUSY']))
  })

  t.test(
    'Statements never use more connections than the maximum, over many tenants, and idle ones are closed',
    async (t) => {
      const homes = await Promise.all(Array.from({ length: 6 }, () => createHome(postgres)))
      const connections = new Connections({ ...defaultConnectionLimits, total: 3, perTenant: 2, idleMilliseconds: 50 })
      t.teardown(() => connections.close())
      let max = 0
      await Promise.all(
        Array.from({ length: 60 }, async (_, n) => {
          const home = homes[n % homes.length]
          if (home === undefined) return
          const database = new ScopedDatabase(connections, {
            tenantId: home.tenantId,
            url: home.url,
            ddlUrl: home.ddl_url,
          })
          const { rows } = await database.query(
            service,
            "select current_setting('app.tenant_id') as id, current_user as login",
          )
          t.same(rows, [{ id: home.tenantId, login: home.tenantId }])
          max = Math.max(max, connections.load.open)
        }),
      )
      t.ok(max <= 3, `${max} were open at once`)
      const deadline = Date.now() + 10_000
      while (connections.load.open > 0 && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 50))
      t.equal(connections.load.open, 0)
    },
  )
})

t.test('Times of Postgres are returned in ISO 8601, as by Date', async (t) => {
  for (const text of [
    '2026-11-22 04:47:52+00',
    '2026-11-22 04:47:52.1+00',
    '2026-11-22 04:47:52.12+00',
    '2026-11-22 04:47:52.123+00',
    '2026-11-22 04:47:52.123456+00',
    '0999-01-01 00:00:00+00',
    '2026-11-22 04:47:52+05:30',
  ]) {
    t.equal(isoTime(text), new Date(text.replace(' ', 'T').replace(/([+-]\d\d)$/, '$1:00')).toISOString(), text)
  }
  for (const text of ['infinity', '-infinity', '0044-03-15 00:00:00+00 BC']) t.equal(isoTime(text), null, text)
})
