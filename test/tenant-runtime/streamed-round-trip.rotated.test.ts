// Streamed responses: rows are fetched while they are read, and the connection is released when they are not.
import { get, type IncomingMessage } from 'node:http'
import Fastify from 'fastify'
import pg from 'pg'
import t from 'tap'
import { Connections, defaultConnectionLimits } from '#tenant-runtime/database/connections.ts'
import { databaseError } from '#tenant-runtime/database/database-error.ts'
import { ScopedDatabase } from '#tenant-runtime/database/scoped-database.ts'
import { sql } from '#tenant-runtime/database/statement.ts'
import { RoundTripError } from '#tenant-runtime/database/round-trip-error.ts'
import { RuntimeError } from '#tenant-runtime/errors.ts'
import { createHome } from '#test/support/home.ts'
import { query } from '#test/support/postgres.ts'
import { array, never, openRoundTrips, service, settings, user } from './support/streamed-round-trips.ts'

t.test('Responses of any length are streamed', async (t) => {
  const {
    postgres,
    home,
    login,
    open,
    one,
    numbers,
    producing,
    produced,
    reset,
    sessions,
    until,
    noSessions,
    read,
    readSome,
    failure,
    onSameConnection,
  } = await openRoundTrips(t)

  t.test('A long response takes no more memory than a short one', async (t) => {
    const { stream } = open(t, one)
    const pass = async (rows: number) => {
      const { body } = await stream(
        sql("select to_json(repeat('x', 1000) || n)::text from generate_series(1, $1::int) n", rows),
      )
      let [length, max] = [0, 0]
      for await (const chunk of body as AsyncIterable<string>) {
        length += chunk.length
        max = Math.max(max, process.memoryUsage.rss())
      }
      return { length, max }
    }
    const { max: before } = await pass(50_000)
    const { length, max } = await pass(400_000)
    t.ok(length > 400_000_000, `${length} characters`)
    t.ok(max - before < 150_000_000, `${((max - before) / 1e6).toFixed(0)} MB more`)
  })

  t.test('A response has all rows in order, whatever their number and size', async (t) => {
    const { stream, connections } = open(t, one)
    for (const count of [0, 1, 63, 64, 65, 576, 577, 100_000]) {
      const { body } = await stream(numbers(count))
      t.same(
        JSON.parse(await read(body)),
        Array.from({ length: count }, (_, n) => n + 1),
        `${count} rows`,
      )
    }
    // From an empty row to more than a chunk, and back.
    const uneven = sql(
      'select to_json(n || repeat(chr(8364), case when n % 97 = 0 then 400000 else n % 5 end))::text from generate_series(1, 1000) n',
    )
    const wanted = Array.from(
      { length: 1_000 },
      (_, n) => `${n + 1}${'€'.repeat((n + 1) % 97 === 0 ? 400_000 : (n + 1) % 5)}`,
    )
    t.ok(JSON.stringify(wanted) === (await read((await stream(uneven)).body)), 'uneven rows')
    t.equal(connections.load.open, 1, 'all on one connection')
  })

  t.test(
    'A response is read in the context of its caller, and returns the results of the earlier statements',
    async (t) => {
      const { stream } = open(t)
      const { before, body } = await stream(sql(`select row_to_json(s)::text from (${settings}) s`), {
        context: user,
        before: [sql('select $1::int as a', 7), sql("select current_setting('app.user_id') as b")],
      })
      t.same(
        before.map(({ rows }) => rows),
        [[{ a: 7 }], [{ b: 'u1' }]],
      )
      t.same(JSON.parse(await read(body)), [
        { tenant: home.tenantId, role: 'authenticated', user_id: 'u1', claims: '{"sub":"u1"}' },
      ])
    },
  )

  t.test('A response leaves nothing of its context on the connection, which is reused', async (t) => {
    const { stream, connections } = open(t, one)
    const pid = sql('select pg_backend_pid()::text')
    const first = await read((await stream(pid, { context: user })).body)
    t.same(await onSameConnection(connections), [])
    await read((await stream(numbers(50_000), { context: user })).body)
    t.same(await onSameConnection(connections), [])
    t.equal(await read((await stream(pid)).body), first)
  })

  t.test('A response commits when it is read to its end, and is rolled back otherwise', async (t) => {
    const { stream } = open(t)
    const insert = (name: string) => sql("insert into schemas (name, fields, rls_policy) values ($1, '[]', '{}')", name)
    await read((await stream(numbers(10_000), { before: [insert('read')] })).body)
    const { body } = await stream(producing(100_000, 100), { before: [insert('left')] })
    await readSome(body, 1)
    body.destroy()
    const { body: failing } = await stream(sql('select (1 / (5000 - n))::text from generate_series(1, 6000) n'), {
      before: [insert('failed')],
    })
    t.type(await failure(read(failing)), RoundTripError)
    await until('undone', async () => (await sessions()).every(({ state }) => state === 'idle'))
    t.same(await query(postgres.url('homes'), `select name from ${home.tenantId}.schemas`), [{ name: 'read' }])
  })

  t.test('Rows are fetched only while they are read', async (t) => {
    await noSessions()
    const { stream } = open(t, one)
    for (const [rows, length] of [
      [1_000_000, 10],
      [5_000, 20_000],
    ] as const) {
      await reset()
      const { body } = await stream(producing(rows, length))
      let taken = 0
      for (const wanted of [1, 1_000_000]) {
        taken += (await readSome(body, wanted)).split(',').length
        await until('waiting for its reader', async () => (await sessions())[0]?.['wait_event'] === 'ClientRead')
        const ahead = (await produced()) - taken
        t.ok(ahead >= 0 && ahead * (length + 10) < 3_000_000, `${ahead} rows of ${length} bytes ahead of ${taken}`)
      }
      body.destroy()
      await noSessions()
    }
  })

  t.test('A fetch stops in the middle when its rows are larger than the ones before', async (t) => {
    await noSessions()
    await reset()
    const { stream } = open(t, one)
    // 2,000 small rows, so that the fetches grow, and then 200 MB.
    const growing = sql(
      `select to_json(nextval('produced') || repeat('x', case when n > 20000 then 100000 else 1 end))::text
        from generate_series(1, 22000) n`,
    )
    const { body } = await stream(growing)
    await readSome(body, 300_000)
    await until('waiting', async () =>
      ['ClientRead', 'ClientWrite'].includes(String((await sessions())[0]?.['wait_event'])),
    )
    const before = await produced()
    t.ok(before < 20_200, `${before} rows were produced`)
    const text = await read(body)
    t.ok(text.length > 199_000_000, 'the whole response arrives when it is read')
    t.equal(await produced(), 22_000)
  })

  t.test('An abandoned response releases its connection at once', async (t) => {
    const { stream, connections, database } = open(t, one)
    const { body } = await stream(numbers(1_000_000), { context: user })
    await readSome(body, 1_000)
    body.destroy()
    await noSessions()
    t.same(connections.load, { open: 0, idle: 0, waiting: 0 })
    t.same((await database.query(service, 'select 1 as one')).rows, [{ one: 1 }])

    const controller = new AbortController()
    const { body: second } = await stream(numbers(1_000_000), { signal: controller.signal })
    controller.abort()
    t.type(await failure(read(second)), RoundTripError)
    await noSessions()
  })

  t.test('A response can be cancelled before its first row', async (t) => {
    const { stream, connections } = open(t, one)
    const controller = new AbortController()
    const response = failure(stream(sql('select pg_sleep(60)::text'), { signal: controller.signal }))
    await until('sleeping', async () => (await sessions())[0]?.['wait_event'] === 'PgSleep')
    controller.abort()
    t.type(await response, RoundTripError)
    t.equal(connections.load.open, 0)
    await noSessions()
    t.ok(await failure(stream(numbers(1), { signal: controller.signal })), 'a cancelled response does not begin')
    t.equal(connections.load.open, 0)
  })

  t.test('A slow reader may take its time, but no fetch may take longer than the statement timeout', async (t) => {
    const { stream } = open(t, { ...one, statementMilliseconds: 200 })
    const { body } = await stream(producing(30_000, 10))
    let chunks = 0
    for await (const chunk of body as AsyncIterable<string>) {
      t.ok(chunk.length > 0)
      // The timeout passes while the portal is suspended.
      if (chunks++ === 1) await query(postgres.url('postgres'), 'select pg_sleep(0.5)')
    }
    t.ok(chunks > 2, `${chunks} chunks`)

    const { body: slow } = await stream(
      sql('select (case when n = 5000 then pg_sleep(60)::text end) || n from generate_series(1, 6000) n'),
    )
    const error = await failure(read(slow))
    t.equal((databaseError(error) as RuntimeError).code, 'STATEMENT_TIMEOUT')
    const first = await failure(stream(sql('select pg_sleep(60)::text')))
    t.equal((databaseError(first) as RuntimeError).code, 'STATEMENT_TIMEOUT')
  })

  t.test('The number of concurrent streams is limited, for each tenant and in total', async (t) => {
    const { stream, database, connections } = open(t, { total: 20, perTenant: 8 })
    const two = [await stream(numbers(1_000_000)), await stream(numbers(1_000_000))]
    const rejected = await failure(stream(numbers(1)))
    t.equal((rejected as RuntimeError).code, 'DATABASE_BUSY')
    t.same((await database.query(service, 'select 1 as one')).rows, [{ one: 1 }], 'other work continues')
    for (const { body } of two) body.destroy()
    await until('released', async () => connections.load.open === connections.load.idle)
    t.equal(await read((await stream(numbers(2))).body), '[1,2]')
    for (let n = 0; n < 5; n++) await failure(stream(sql('select nonsense')))
    t.equal(await read((await stream(numbers(2))).body), '[1,2]', 'failed streams release their slots')

    const other = await createHome(postgres)
    const few = new Connections({ ...defaultConnectionLimits, total: 2, perTenant: 2 })
    t.teardown(() => few.close())
    const [mine, theirs] = [home, other].map(
      ({ tenantId, url, ddl_url }) => new ScopedDatabase(few, { tenantId, url, ddlUrl: ddl_url }),
    )
    const held = await mine?.stream(service, [], numbers(1_000_000), array, never)
    const busy = theirs === undefined ? undefined : await failure(theirs.stream(service, [], numbers(1), array, never))
    t.equal((busy as RuntimeError).code, 'DATABASE_BUSY')
    held?.body.destroy()
  })

  t.test('A response is prepared again after a change of its table', async (t) => {
    const { stream, connections } = open(t, one)
    await query(
      home.adminUrl,
      `create table widening (a int); insert into widening values (1); grant select on widening to ${home.tenantId}`,
    )
    const last = sql('select w.a::text from widening w')
    t.equal(await read((await stream(last)).body), '[1]')
    await query(home.adminUrl, 'alter table widening alter column a type bigint')
    t.equal(await read((await stream(last)).body), '[1]')
    const whole = sql('select * from (select a from widening) w')
    t.equal(await read((await stream(whole)).body), '[1]')
    await query(home.adminUrl, 'alter table widening alter column a type text')
    t.equal(await read((await stream(whole)).body), '[1]')
    t.equal(connections.load.open, 1)
  })

  t.test('HTTP clients read a response at their own speed, and a disconnect ends it', async (t) => {
    await noSessions()
    const { stream, connections } = open(t, one)
    const statements = {
      '/long': producing(5_000, 20_000),
      '/broken': sql('select (1 / (5000 - n))::text from generate_series(1, 6000) n'),
    }
    const app = Fastify()
    app.get<{ Params: { '*': string } }>('/*', async (request, reply) => {
      const { body } = await stream(request.url === '/long' ? statements['/long'] : statements['/broken'])
      return reply.type('application/json').send(body)
    })
    t.teardown(() => app.close())
    const url = await app.listen({ host: '127.0.0.1', port: 0 })
    const response = (path: string) =>
      new Promise<IncomingMessage>((resolve, reject) => {
        get(`${url}${path}`, { agent: false }, resolve).once('error', reject)
      })

    await reset()
    const stopped = await response('/long')
    await readSome(stopped.setEncoding('latin1'), 1)
    await until('waiting for its reader', async () => (await sessions())[0]?.['wait_event'] === 'ClientRead')
    const made = await produced()
    t.ok(made < 2_500, `${made} of 5000 rows were produced`)
    stopped.destroy()
    await noSessions()
    t.same(connections.load, { open: 0, idle: 0, waiting: 0 })

    const whole = await response('/long')
    t.equal((await read(whole.setEncoding('latin1'))).split(',').length, 5_000)
    t.equal(whole.complete, true)
    const broken = await response('/broken')
    t.equal(broken.statusCode, 200)
    t.ok(await failure(read(broken.setEncoding('latin1'))))
    t.equal(broken.complete, false, 'the response is incomplete')
  })

  t.test('Streams share their connections with ordinary round trips', async (t) => {
    const { stream, database, connections } = open(t, { total: 6, perTenant: 6 })
    const odd = Array.from({ length: 60 }, async (_, n) => {
      const statement = `select $1::int as n`
      if (n % 3 > 0) {
        t.same((await database.query(user, statement, n)).rows, [{ n }])
        return
      }
      const response = await stream(numbers(2_000), { context: user }).catch((error: unknown) => {
        if (error instanceof RuntimeError && error.code === 'DATABASE_BUSY') return undefined
        throw error
      })
      if (response === undefined) return
      if (n % 2 === 0) response.body.destroy()
      else t.match(await read(response.body), /^\[1,.*,2000\]$/)
    })
    await Promise.all(odd)
    await until('at rest', async () => connections.load.open === connections.load.idle)
    while (connections.load.idle > 0) {
      const connection = await connections.acquire(login)
      const own = await connection.client.query<{ pid: number }>('select pg_backend_pid() as pid')
      const rows = await query(
        postgres.url('homes'),
        'select count(*)::int as open from pg_locks where pid = $1 and locktype = $2',
        [own.rows[0]?.pid, 'transactionid'],
      )
      t.same(rows, [{ open: 0 }])
      t.ok(connection.client instanceof pg.Client)
      connections.release(login, connection, false)
    }
  })
})
