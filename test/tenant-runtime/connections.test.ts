// Which tenant gets a connection when there are too few, and what happens to connections that end.
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import t, { type Test } from 'tap'
import { Connections, defaultConnectionLimits, type ConnectionLimits } from '#tenant-runtime/database/connections.ts'
import { ScopedDatabase } from '#tenant-runtime/database/scoped-database.ts'
import type { RlsContext } from '#tenant-runtime/tenancy/rls-context.ts'
import { createHome } from '#test/support/home.ts'
import { startPostgres } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

/** ErrorResponse: FATAL 57P01, which Postgres sends to a session that it ends. */
const fields = Buffer.from('SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0')
const ending = Buffer.concat([Buffer.from('E'), Buffer.alloc(4), fields])
ending.writeUInt32BE(4 + fields.length, 1)

/** Starts a proxy before Postgres. It appends the end of the session to the `nth` response that reports readiness. */
async function openHastyProxy(t: Test, port: number, nth: number): Promise<number> {
  let responses = 0
  const server = createServer((client) => {
    const postgres = connect({ host: '127.0.0.1', port })
    client
      .on('error', () => postgres.destroy())
      .on('close', () => postgres.destroy())
      .pipe(postgres)
    postgres.on('error', () => client.destroy()).on('close', () => client.destroy())
    postgres.on('data', (chunk: Buffer) => {
      const isReady = chunk.length >= 6 && chunk.readUInt8(chunk.length - 6) === 0x5a
      if (isReady && ++responses === nth) client.end(Buffer.concat([chunk, ending]))
      else client.write(chunk)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => server.close())
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  return address.port
}

const service: RlsContext = { role: 'service', reason: 'test' }

t.test('Connections', async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  const homes = await Promise.all(Array.from({ length: 3 }, () => createHome(postgres)))
  const open = (limits: Partial<ConnectionLimits>, urlOf: (url: string) => string = (url) => url) => {
    const connections = new Connections({ ...defaultConnectionLimits, ...limits })
    t.teardown(() => connections.close())
    const databases = homes.map(
      ({ tenantId, url, ddl_url }) => new ScopedDatabase(connections, { tenantId, url: urlOf(url), ddlUrl: ddl_url }),
    )
    return { connections, databases }
  }

  t.test('Tenants receive connections in turn, however many requests one of them sends', async (t) => {
    const {
      databases: [greedy, modest, late],
    } = open({ total: 2, perTenant: 2, waitMilliseconds: 20_000 })
    if (greedy === undefined || modest === undefined || late === undefined) throw new Error('three were created')
    let isOver = false
    let requests = 0
    const crowd = Array.from({ length: 20 }, async () => {
      for (; !isOver; requests++) await greedy.query(service, 'select 1')
    })
    // Without turns these would wait for as long as the crowd sends requests: forever.
    for (const other of [modest, late, modest])
      t.same((await other.query(service, 'select current_user::text as login')).rows, [{ login: other.tenantId }])
    isOver = true
    await Promise.all(crowd)
    t.ok(requests > 20, 'and the crowd continued')
  })

  t.test('Tenants with slow statements leave a connection for another one', async (t) => {
    const {
      connections,
      databases: [slow, slower, late],
    } = open({ total: 8, perTenant: 4, waitMilliseconds: 20_000 })
    if (slow === undefined || slower === undefined || late === undefined) throw new Error('three were created')
    const sleep = (database: ScopedDatabase) =>
      Array.from({ length: 6 }, () => database.query(service, 'select pg_sleep(1)'))
    const sleeping = [...sleep(slow), ...sleep(slower)]
    await until(() => connections.load.open >= 6 && connections.load.waiting === 6)
    let haveEnded = 0
    for (const one of sleeping) void one.then(() => haveEnded++)
    await late.query(service, 'select 1')
    t.equal(haveEnded, 0, 'it has not waited for them')
    await Promise.all(sleeping)
  })

  t.test('A connection that cannot be opened leaves no request waiting', async (t) => {
    const {
      connections,
      databases: [database],
    } = open({ total: 1, perTenant: 1, waitMilliseconds: 20_000 }, (url) => url.replace(/:\d+\//, ':1/'))
    const outcomes = await Promise.allSettled(
      Array.from({ length: 5 }, async () => database?.query(service, 'select 1')),
    )
    t.same(
      outcomes.map((outcome) => outcome.status === 'rejected' && (outcome.reason as { code: string }).code),
      Array(5).fill('DATABASE_UNAVAILABLE'),
    )
    t.same(connections.load, { open: 0, idle: 0, waiting: 0 })
  })

  t.test('Work of a tenant that is not served any more opens no connection, and leaves none', async (t) => {
    const { connections } = open({ perTenant: 1 })
    const [{ tenantId, url, ddl_url: ddlUrl } = { tenantId: '', url: '', ddl_url: '' }] = homes
    const logins = { tenantId, url, ddlUrl }
    const database = new ScopedDatabase(connections, logins)
    const running = database.query(service, 'select pg_sleep(0.2)')
    const waiting = t.rejects(database.query(service, 'select 1'), { code: 'DATABASE_UNAVAILABLE' })
    await until(() => connections.load.open === 1 && connections.load.waiting === 1, 'the connection')
    // As the registry does when the tenant's manifest is removed.
    Object.assign(logins, { url: '', ddlUrl: '' })
    connections.evict(tenantId)
    await Promise.all([running, waiting])
    t.same(connections.load, { open: 0, idle: 0, waiting: 0 }, 'a busy one is closed when it is released')
    await t.rejects(database.query(service, 'select 1'), { code: 'DATABASE_UNAVAILABLE' })
    await t.rejects(
      database.withOwner(async () => undefined),
      { code: 'DATABASE_UNAVAILABLE' },
    )
    t.same(connections.load, { open: 0, idle: 0, waiting: 0 })
  })

  for (const [when, nth] of [
    ['with its login', 1],
    ['with a response', 2],
  ] as const) {
    t.test(`A connection that ends ${when} is not reused`, async (t) => {
      const port = await openHastyProxy(t, postgres.port, nth)
      const {
        connections,
        databases: [database],
      } = open({ total: 1, perTenant: 1 }, (url) => url.replace(/:\d+\//, `:${port}/`))
      const first = await database?.query(service, 'select 1 as one').catch((error: unknown) => error)
      if (nth === 1) t.match(first, { code: 'DATABASE_UNAVAILABLE' })
      else t.match(first, { rows: [{ one: 1 }] }, 'the first response was complete')
      t.same(connections.load, { open: 0, idle: 0, waiting: 0 })
      t.match(await database?.query(service, 'select 2 as two'), { rows: [{ two: 2 }] })
      await connections.close()
    })
  }
})
