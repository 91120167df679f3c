// Stored messages of private channels: their receivers, their order, and what a client that joins later receives.
import pg from 'pg'
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { createNotes } from './support/notes.ts'
import { RawSocket } from './support/raw-socket.ts'
import { isPrivate, join, policies, topic } from './support/room.ts'
import { messagesSql, runSql } from './support/run-sql.ts'

/** Returns the frame of a message that the server stores. @param payload JSON */
function storedText(joinRef: string, ref: string, payload: string): Buffer {
  const texts = [joinRef, ref, topic, 'note', '{"persist":true}']
  const lengths = texts.map((text) => Buffer.byteLength(text))
  return Buffer.concat([Buffer.from([3, ...lengths, 1]), Buffer.from(texts.join('') + payload)])
}

function storedFrame(joinRef: string, ref: string, payload: object): Buffer {
  return storedText(joinRef, ref, JSON.stringify(payload))
}

t.test('Stored messages', async (t) => {
  const runtime = await startRuntime(t)

  t.test('Stored messages reach those who are connected, and those who request them when they join', async (t) => {
    const tenant = await runtime.addTenant()
    await runSql(tenant, await messagesSql(), policies)
    const ada = await join(tenant, 'ada')
    const http = (caller: string, query: string) =>
      tenant.request('POST', `/realtime/v1/api/broadcast/room-ada/events/note?private=true&${query}`, {
        as: caller,
        body: { by: 'http' },
      })
    t.equal((await http('ada', 'persist=true')).status, 202)
    t.equal((await http('ada', 'persist[ttl]=0')).status, 202)
    t.match((await http('ben', 'persist=true')).json(), { code: 'ROW_DENIED' })
    t.match((await http('ada', 'persist[ttl]=x')).json(), { code: 'BAD_REQUEST' })
    ada.raw.sendBytes(storedFrame(ada.ref, '99', { by: 'socket' }))
    t.match(await ada.raw.reply('99'), { payload: { status: 'ok' } })
    await until(() => ada.raw.of('broadcast').length === 3)
    t.match(
      ada.raw.of('broadcast').map(({ payload }) => payload),
      [{ payload: { by: 'http' } }, { payload: { by: 'http' } }, { payload: { by: 'socket' } }],
    )
    const raw = await RawSocket.open(tenant)
    const replay = (since: number, limit?: number) => ({ ...isPrivate, broadcast: { replay: { since, limit } } })
    await raw.join(topic, replay(0), { access_token: tenant.token('ben') })
    await until(() => raw.of('broadcast').length === 2)
    t.match(
      raw.of('broadcast').map(({ payload }) => payload),
      [
        { payload: { by: 'http' }, meta: { replayed: true } },
        { payload: { by: 'socket' }, meta: { replayed: true } },
      ],
    )
    await raw.join(topic, replay(0, 1), { access_token: tenant.token('ben') })
    await raw.join(topic, replay(Date.now() + 60_000), { access_token: tenant.token('ben') })
    await raw.call('phoenix', 'heartbeat', {})
    t.match(raw.of('broadcast').slice(2), [{ payload: { payload: { by: 'socket' } } }])
    const { reply } = await raw.join('realtime:open', { broadcast: { replay: { since: 0 } } })
    t.match(reply.payload, { response: { reason: /Only private channels have "replay"/ } })
    for (const each of [ada.raw, raw]) each.leave()
  })

  t.test('Stored messages of a connection arrive in the order in which it sent them', async (t) => {
    const tenant = await runtime.addTenant()
    await runSql(tenant, await messagesSql(), policies)
    const [ada, ben] = [await join(tenant, 'ada'), await join(tenant, 'ben')]
    // Postgres takes longer for the first of each three.
    await runSql(
      tenant,
      `create function slow() returns trigger language plpgsql as $$ begin
        if (new.payload ->> 'n')::integer % 3 = 0 then perform pg_sleep(0.02); end if;
        return new;
      end $$;
      create trigger slow before insert on realtime_messages for each row when (new.extension = 'broadcast' and new.payload ? 'n')
        execute function slow()`,
    )
    const sent = Array.from({ length: 60 }, (_, n) => n)
    for (const n of sent) ada.raw.sendBytes(storedFrame(ada.ref, String(1_000 + n), { n }))
    await until(() => ben.raw.of('broadcast').length === sent.length)
    t.same(
      ben.raw.of('broadcast').map(({ payload }) => (payload['payload'] as { n: number }).n),
      sent,
    )
    for (const n of sent) t.match(await ada.raw.reply(String(1_000 + n)), { payload: { status: 'ok' } })
    for (const { raw } of [ada, ben]) raw.leave()
  })

  t.test(
    'A connection whose stored messages wait for Postgres receives an error for each one that is dropped',
    async (t) => {
      const tenant = await runtime.addTenant()
      await runSql(tenant, await messagesSql(), policies)
      const ada = await join(tenant, 'ada')
      const blocking = new pg.Client({ connectionString: tenant.home.adminUrl })
      await blocking.connect()
      await blocking.query('begin')
      await blocking.query('lock table realtime_messages in share mode')
      const sent = Array.from({ length: 102 }, (_, n) => n)
      for (const n of sent) ada.raw.sendBytes(storedFrame(ada.ref, String(1_000 + n), { n }))
      t.match(await ada.raw.reply('1101'), {
        payload: { status: 'error', response: { reason: /^MessageQueueFull/ } },
      })
      await blocking.query('commit')
      await blocking.end()
      t.match(await ada.raw.reply('1099'), { payload: { status: 'ok' } })
      ada.raw.leave()
    },
  )

  t.test(
    'A message that Postgres or a trigger rejects gets the reason, and so does a time out of its range',
    async (t) => {
      const tenant = await runtime.addTenant()
      await runSql(
        tenant,
        await messagesSql(),
        policies,
        `create function check_note() returns trigger language plpgsql as $$ begin
        if new.payload ? 'rude' then raise exception 'mind your words'; end if;
        return new;
      end $$;
      create trigger check_note before insert on realtime_messages for each row execute function check_note()`,
      )
      const ada = await join(tenant, 'ada')
      const cases: [payload: string, reason: RegExp][] = [
        ['{"a":"\\u0000"}', /^InvalidPayload: The message cannot be stored: unsupported Unicode escape sequence\.$/],
        ['1e999999', /^InvalidPayload: The message cannot be stored: /],
        ['{"rude":1}', /^InvalidPayload: The message cannot be stored: mind your words\.$/],
      ]
      for (const [n, [payload, reason]] of cases.entries()) {
        ada.raw.sendBytes(storedText(ada.ref, String(100 + n), payload))
        t.match(await ada.raw.reply(String(100 + n)), { payload: { status: 'error', response: { reason } } }, payload)
      }
      for (const body of [{ a: '\0' }, { rude: 1 }]) {
        const path = '/realtime/v1/api/broadcast/room-ada/events/note?private=true&persist=true'
        const { status, json } = await tenant.request('POST', path, { as: 'ada', body })
        t.match([status, json()], [400, { code: 'BAD_REQUEST', message: /cannot be stored: / }])
      }
      const late = { private: true, broadcast: { replay: { since: 1e300 } } }
      const { reply } = await ada.raw.join(topic, late, { access_token: tenant.token('ada') })
      t.match(reply.payload, { status: 'error', response: { reason: /^InvalidJoinPayload: timestamp out of range/ } })
      ada.raw.leave()
    },
  )

  t.test('A message that becomes too large when it is stored is rejected, and harms no receiver', async (t) => {
    const tenant = await runtime.addTenant({ limits: { realtime_payload_bytes: 256_000 } })
    await runSql(tenant, await messagesSql(), policies)
    const [ada, ben] = [await join(tenant, 'ada'), await join(tenant, 'ben')]
    const path = '/realtime/v1/api/broadcast/room-ada/events/note?private=true&persist=true'
    for (const [n, number] of ['1e300', '1E-0200', '1e131071'].entries()) {
      const text = `[${Array(20_000).fill(number).join(',')}]`
      ada.raw.sendBytes(storedText(ada.ref, String(200 + n), text))
      t.match(await ada.raw.reply(String(200 + n)), {
        payload: {
          status: 'error',
          response: { reason: 'PayloadTooLarge: The plan allows payloads of 256000 bytes.' },
        },
      })
    }
    const spaced = await tenant.request('POST', path, { as: 'ada', body: Array(100_000).fill(1) })
    t.match([spaced.status, spaced.json()], [413, { code: 'BODY_TOO_LARGE' }])
    const text = JSON.stringify({ text: '1e300,'.repeat(30_000) })
    ada.raw.sendBytes(storedText(ada.ref, '300', text))
    t.match(await ada.raw.reply('300'), { payload: { status: 'ok' } })
    await until(() => ben.raw.of('broadcast').length === 1, 'the message with a long text')
    for (const { raw } of [ada, ben]) raw.leave()
  })

  t.test('A message of SQL that is too large is dropped with an error, and later ones arrive', async (t) => {
    const tenant = await runtime.addTenant({ limits: { realtime_payload_bytes: 256_000 } })
    await runSql(tenant, await messagesSql(), policies)
    const ben = await join(tenant, 'ben')
    const open = await RawSocket.open(tenant)
    await open.join(topic)
    await runSql(
      tenant,
      `select realtime_send('{"n":1}', 'x', 'room-ada')`,
      `select realtime_send(to_jsonb(repeat('x', 5000000)), 'x', 'room-ada')`,
      // Postgres cannot show this one as a text.
      `select realtime_send(jsonb_agg(1e131071::numeric), 'x', 'room-ada') from generate_series(1, 10000)`,
      `select realtime_send(null, 'x', 'room-ada')`,
      `select realtime_send('{"n":2}', 'x', 'room-ada')`,
    )
    await until(() => ben.raw.of('broadcast').length === 3, 'the other messages')
    t.same(
      ben.raw.of('broadcast').map(({ payload }) => payload['payload']),
      [{ n: 1 }, null, { n: 2 }],
    )
    const message = 'PayloadTooLarge: The plan allows payloads of 256000 bytes.'
    t.match(
      ben.raw.of('system').map(({ payload }) => payload),
      [1, 2].map(() => ({ extension: 'system', status: 'error', message, channel: 'room-ada' })),
    )
    t.same([open.of('system'), open.of('broadcast')], [[], []])
    const raw = await RawSocket.open(tenant)
    const replay = { ...isPrivate, broadcast: { replay: { since: 0 } } }
    t.match((await raw.join(topic, replay, { access_token: tenant.token('ben') })).reply.payload, { status: 'ok' })
    await until(() => raw.of('broadcast').length === 3, 'the replay')
    for (const each of [ben.raw, open, raw]) each.leave()
  })

  t.test('A client that joins receives at most 25 stored messages, the newest in their order', async (t) => {
    const tenant = await runtime.addTenant()
    await runSql(
      tenant,
      await messagesSql(),
      policies,
      `select realtime_send(jsonb_build_object('n', n), 'x', 'room-ada') from generate_series(1, 30) n`,
    )
    const raw = await RawSocket.open(tenant)
    const broadcast = { replay: { since: 0, limit: 1_000 } }
    await raw.join(topic, { private: true, broadcast }, { access_token: tenant.token('ada') })
    await raw.call('phoenix', 'heartbeat', {})
    t.same(
      raw.of('broadcast').map(({ payload }) => (payload['payload'] as { n: number }).n),
      Array.from({ length: 25 }, (_, at) => at + 6),
    )
    raw.leave()
  })

  t.test('Messages that are older than the replayed ones do not arrive after them', async (t) => {
    const tenant = await runtime.addTenant()
    await runSql(tenant, await messagesSql(), policies)
    const ada = await join(tenant, 'ada')
    // While a transaction runs, messages are stored, and not sent to channels.
    const running = new pg.Client({ connectionString: tenant.home.adminUrl })
    await running.connect()
    await running.query('begin')
    await running.query('select pg_current_xact_id()')
    const send = (from: number, to: number) =>
      runSql(
        tenant,
        `select realtime_send(jsonb_build_object('n', n), 'x', 'room-ada') from generate_series(${from}, ${to}) n`,
      )
    await send(1, 30)
    const raw = await RawSocket.open(tenant)
    const broadcast = { replay: { since: 0 } }
    await raw.join(topic, { private: true, broadcast }, { access_token: tenant.token('ada') })
    await running.query('commit')
    await running.end()
    await send(31, 31)
    const numbers = (socket: RawSocket) =>
      socket.of('broadcast').map(({ payload }) => (payload['payload'] as { n: number }).n)
    for (const socket of [ada.raw, raw]) await until(() => numbers(socket).includes(31))
    t.same(
      numbers(ada.raw),
      Array.from({ length: 31 }, (_, at) => at + 1),
    )
    t.same(
      numbers(raw),
      Array.from({ length: 26 }, (_, at) => at + 6),
    )
    for (const socket of [ada.raw, raw]) socket.leave()
  })

  t.test('A stored message that is sent while a client joins with a replay arrives once', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant)
    await runSql(tenant, await messagesSql(), policies)
    const ada = await join(tenant, 'ada')
    const store = async (name: string) => {
      const path = `/realtime/v1/api/broadcast/room-ada/events/${name}?private=true&persist=true`
      t.equal((await tenant.request('POST', path, { as: 'ada', body: {} })).status, 202)
    }
    const replay = { ...isPrivate, broadcast: { replay: { since: 0 } } }
    const ben = { access_token: tenant.token('ben') }
    // While a transaction runs, messages are stored, and not sent to channels.
    const running = new pg.Client({ connectionString: tenant.home.adminUrl })
    await running.connect()
    await running.query('begin')
    await running.query('select pg_current_xact_id()')
    await store('first')
    const early = await RawSocket.open(tenant)
    await early.join(topic, replay, ben)
    await early.until(({ event }) => event === 'broadcast', 'the replayed message')
    // Its subscription to changes waits for the transaction.
    const late = await RawSocket.open(tenant)
    const subscription = { event: '*', schema: 'public', table: 'notes' }
    const joining = late.join(topic, { ...replay, postgres_changes: [subscription] }, ben)
    await late.call('phoenix', 'heartbeat', {})
    await store('second')
    await running.query('commit')
    await running.end()
    t.match((await joining).reply.payload, { status: 'ok' })
    await store('third')
    const events = (raw: RawSocket) => raw.of('broadcast').map(({ payload }) => payload['event'])
    for (const raw of [ada.raw, early, late]) {
      await until(() => events(raw).includes('third'), 'the last message')
      t.same(events(raw), ['first', 'second', 'third'])
      raw.leave()
    }
  })

  t.test('Nothing of all this was logged as an error', async (t) => t.same(runtime.errors, []))
})
