// Streamed responses that do not complete: killed sessions, failing statements and commits, and slow readers.
import t from 'tap'
import { databaseError } from '#tenant-runtime/database/database-error.ts'
import { SlowReaderError } from '#tenant-runtime/database/row-stream.ts'
import { sql } from '#tenant-runtime/database/statement.ts'
import { RoundTripError } from '#tenant-runtime/database/round-trip-error.ts'
import { RuntimeError } from '#tenant-runtime/errors.ts'
import { query } from '#test/support/postgres.ts'
import { openRoundTrips, service, user } from './support/streamed-round-trips.ts'

t.test('A streamed response can fail', async (t) => {
  const {
    postgres,
    home,
    open,
    one,
    numbers,
    producing,
    sessions,
    until,
    noSessions,
    read,
    readSome,
    failure,
    onSameConnection,
  } = await openRoundTrips(t)

  t.test('A killed connection ends the stream with an error, whether or not it is being read', async (t) => {
    const { stream, connections, database } = open(t, one)
    for (const reads of [true, false]) {
      const { body } = await stream(producing(1_000_000, 10), { context: user })
      await readSome(body, 1_000)
      const failed = new Promise((resolve) => body.once('error', resolve))
      await until('waiting', async () => (await sessions())[0]?.['wait_event'] === 'ClientRead')
      await query(
        postgres.url('postgres'),
        'select pg_terminate_backend(pid) from pg_stat_activity where usename = $1',
        [home.tenantId],
      )
      const error = reads ? await failure(read(body)) : await failed
      t.type(error, RoundTripError)
      t.equal((databaseError(error) as RuntimeError).code, 'DATABASE_UNAVAILABLE')
      t.equal(connections.load.open, 0)
      t.same((await database.query(service, 'select 1 as one')).rows, [{ one: 1 }])
      t.same(await onSameConnection(connections), [])
    }
  })

  t.test('An error before the first rows is an ordinary error, and the connection is reused', async (t) => {
    const { stream, connections } = open(t, one)
    for (const text of [
      'select (1 / (10 - n))::text from generate_series(1, 1000) n',
      'select nonsense',
      'selec',
      "select 'x'::int::text",
    ]) {
      const error = await failure(stream(sql(text), { context: user }))
      t.type(error, RoundTripError, text)
      t.equal((error as RoundTripError).reusable, true, text)
      t.same(connections.load, { open: 1, idle: 1, waiting: 0 })
      t.same(await onSameConnection(connections), [], text)
    }
    const error = await failure(stream(numbers(1), { before: [sql('select 1 / $1::int', 0)] }))
    t.equal((error as RoundTripError).sqlstate, '22012')
    t.equal(await read((await stream(numbers(2))).body), '[1,2]')
    t.equal(connections.load.open, 1)
  })

  t.test(
    'An error in the middle does not end the stream like a complete one, and the connection is not reused',
    async (t) => {
      const { stream, connections, database } = open(t, one)
      const { body } = await stream(sql('select (1 / (5000 - n))::text from generate_series(1, 6000) n'), {
        context: user,
      })
      let text = ''
      body.on('data', (chunk: string) => (text += chunk))
      const error = await new Promise((resolve) => body.once('error', resolve))
      t.equal((error as RoundTripError).sqlstate, '22012')
      t.ok(text.startsWith('[0,0,'), 'a part had arrived')
      t.notMatch(text, /\]/)
      await noSessions()
      t.same(connections.load, { open: 0, idle: 0, waiting: 0 })
      t.same((await database.query(service, 'select 1 as one')).rows, [{ one: 1 }])
      t.same(await onSameConnection(connections), [])
    },
  )

  t.test('A failed commit fails the response', async (t) => {
    const { stream, connections } = open(t, one)
    await query(
      home.adminUrl,
      `create table late (a int unique deferrable initially deferred); grant select, insert on late to ${home.tenantId}`,
    )
    const twice = sql('insert into late values (1), (1)')
    const { body } = await stream(numbers(10), { before: [twice], context: user })
    const error = await failure(read(body))
    t.equal((error as RoundTripError).sqlstate, '23505')
    t.same(await query(home.adminUrl, 'select * from late'), [])
    t.same(await onSameConnection(connections), [])
  })

  t.test('A response is cancelled when it is not read for too long, or when it takes too long in total', async (t) => {
    const stalled = open(t, { ...one, reading: { stallMilliseconds: 50, maxMilliseconds: 60_000 } })
    for (const length of [0, 200_000]) {
      const { body } = await stalled.stream(producing(100_000, 100), { context: user })
      const failed = new Promise((resolve) => body.once('error', resolve))
      if (length > 0) await readSome(body, length)
      t.type(await failed, SlowReaderError)
      await noSessions()
      t.same(stalled.connections.load, { open: 0, idle: 0, waiting: 0 })
    }
    const long = open(t, { ...one, reading: { stallMilliseconds: 60_000, maxMilliseconds: 100 } })
    const { body } = await long.stream(sql('select pg_sleep(0.01)::text from generate_series(1, 100000)'))
    t.type(await failure(read(body)), SlowReaderError)
    await noSessions()
  })
})
