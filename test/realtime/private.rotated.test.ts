// Private channels: the policies of the tenant's own table decide who may receive and send.
import pg from 'pg'
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { RawSocket } from './support/raw-socket.ts'
import { isPrivate, join, policies, topic, userId } from './support/room.ts'
import { messagesSql, runSql } from './support/run-sql.ts'

t.test('Private channels', async (t) => {
  const runtime = await startRuntime(t)

  t.test('Without the table, a private channel is rejected with what to do', async (t) => {
    const tenant = await runtime.addTenant()
    const { raw, reply } = await join(tenant, 'ada')
    t.match(reply.payload, {
      status: 'error',
      response: { reason: /^PrivateChannelsUnavailable: .*"realtime_messages"/ },
    })
    const sent = await tenant.request('POST', '/realtime/v1/api/broadcast/room/events/x?private=true', {
      as: 'ada',
      body: {},
    })
    t.match([sent.status, sent.json()], [400, { message: 'The tenant has no table "realtime_messages".' }])
    raw.leave()
  })

  t.test('Policies decide who joins, receives and sends, and leave no rows behind', async (t) => {
    const tenant = await runtime.addTenant()
    await runSql(tenant, await messagesSql(), policies)
    const ada = await join(tenant, 'ada')
    const ben = await join(tenant, 'ben')
    const service = await join(tenant, 'service')
    t.match(
      [ada, ben, service].map(({ reply }) => reply.payload['status']),
      ['ok', 'ok', 'ok'],
    )
    for (const caller of ['eve', undefined]) {
      const { raw, reply } = await join(tenant, caller)
      t.match(reply.payload, { status: 'error', response: { reason: /^Unauthorized: The policies/ } }, String(caller))
      raw.leave()
    }
    t.match(await ada.raw.call(topic, 'broadcast', { event: 'a', payload: 1 }, ada.ref), { payload: { status: 'ok' } })
    // Dropped without a reply, because ben may only receive.
    const dropped = ben.raw.send(topic, 'broadcast', { event: 'b', payload: 2 }, ben.ref)
    t.match(await service.raw.call(topic, 'broadcast', { event: 'c', payload: 3 }, service.ref), {
      payload: { status: 'ok' },
    })
    await until(() => ben.raw.of('broadcast').length === 2 && ada.raw.of('broadcast').length === 1)
    t.same(
      ben.raw.of('broadcast').map(({ payload }) => payload['event']),
      ['a', 'c'],
    )
    await ben.raw.call('phoenix', 'heartbeat', {})
    t.notOk(
      ben.raw.of('phx_reply').some(({ ref }) => ref === dropped),
      'no reply, even with "ack"',
    )
    t.match(await ada.raw.call(topic, 'presence', { event: 'track', payload: {} }, ada.ref), {
      payload: { status: 'error', response: { reason: /^Unauthorized: The policies do not allow presence/ } },
    })
    t.same(await tenant.rows('select * from realtime_messages'), [])
    for (const { raw } of [ada, ben, service]) raw.leave()
  })

  t.test('A public channel of the same name receives nothing of the private one', async (t) => {
    const tenant = await runtime.addTenant()
    await runSql(tenant, await messagesSql(), policies)
    const ada = await join(tenant, 'ada')
    const open = await RawSocket.open(tenant)
    await open.join(topic)
    await ada.raw.call(topic, 'broadcast', { event: 'a', payload: 1 }, ada.ref)
    await open.call('phoenix', 'heartbeat', {})
    t.same(open.of('broadcast'), [])
    for (const raw of [ada.raw, open]) raw.leave()
  })

  t.test('A new token is checked again, and ends a channel that its user may not read', async (t) => {
    const tenant = await runtime.addTenant()
    await runSql(tenant, await messagesSql(), policies)
    const { raw, ref } = await join(tenant, 'ada')
    raw.send(topic, 'access_token', { access_token: tenant.token('ben') }, ref)
    raw.send(topic, 'access_token', { access_token: tenant.token('eve') }, ref)
    await raw.until(({ event }) => event === 'phx_close', 'the end of the channel')
    t.match(raw.of('system').at(-1)?.payload, { status: 'error', message: /^Unauthorized: The policies/ })
    raw.leave()
  })

  t.test('A rotation during a join or a check of a new token ends the channel', async (t) => {
    const tenant = await runtime.addTenant()
    await runSql(tenant, await messagesSql(), policies)
    const renewing = await join(tenant, 'ada')
    const blocking = new pg.Client({ connectionString: tenant.home.adminUrl })
    await blocking.connect()
    await blocking.query('begin')
    await blocking.query('lock table realtime_messages in share mode')
    // The checks of their rights wait for the lock.
    const joining = join(tenant, 'ada')
    renewing.raw.send(topic, 'access_token', { access_token: tenant.token('ada', { n: 1 }) }, renewing.ref)
    await renewing.raw.call('phoenix', 'heartbeat', {})
    const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'realtime_messages'`
    await until(async () => (await tenant.rows(waiting)).length >= 2, 'both checks wait')
    tenant.change({ jwt_secrets: ['s'.repeat(40)] })
    await renewing.raw.until(({ event }) => event === 'phx_close', 'the end of the channel with its former token')
    await blocking.query('commit')
    await blocking.end()
    const { raw, reply } = await joining
    t.match(reply.payload, { status: 'ok' })
    await raw.until(({ event }) => event === 'phx_close', 'the end of the channel')
    t.match(raw.of('system').at(-1)?.payload, { status: 'error', message: /^TokenRevoked: / })
    for (const each of [raw, renewing.raw]) each.leave()
  })

  t.test('The newest of several new tokens decides, whichever is checked first', async (t) => {
    const tenant = await runtime.addTenant()
    await runSql(tenant, await messagesSql(), policies)
    const { raw, ref } = await join(tenant, 'ada')
    // Now, the check of ada's rights takes longer than that of ben's, who may only receive.
    await runSql(
      tenant,
      `create function slow() returns boolean language plpgsql as $$ begin
         if ${userId} = 'ada' then perform pg_sleep(0.5); end if;
         return false;
       end $$;
       create policy slowly on realtime_messages for select using (slow())`,
    )
    for (const token of [tenant.token('ada', { n: 1 }), tenant.token('ben')])
      raw.send(topic, 'access_token', { access_token: token }, ref)
    const sleeping = `select 1 from pg_stat_activity where wait_event = 'PgSleep'`
    await until(async () => (await tenant.rows(sleeping)).length > 0, "the check of ada's rights")
    await until(async () => (await tenant.rows(sleeping)).length === 0, 'its end')
    // The reply to this join comes after the end of the check.
    await raw.join('realtime:room-ben', isPrivate, { access_token: tenant.token('ben') })
    const dropped = raw.send(topic, 'broadcast', { event: 'x', payload: 1 }, ref)
    await raw.call('phoenix', 'heartbeat', {})
    t.notOk(
      raw.of('phx_reply').some(({ ref: replied }) => replied === dropped),
      'the broadcast is dropped',
    )
    raw.leave()
  })

  t.test('Policies that fail reject a join, a token or a message with their error, and not as a failure', async (t) => {
    const tenant = await runtime.addTenant()
    await runSql(
      tenant,
      await messagesSql(),
      `create policy members on realtime_messages using (split_part(realtime_topic(), ':', 2)::uuid is not null)`,
    )
    const valid = 'realtime:room:6f2c1f0e-5a52-4c62-8d8d-0d3a4f3f9a11'
    const { raw, ref, reply } = await join(tenant, 'ada', valid)
    t.match(reply.payload, { status: 'ok' })
    const invalid = /^Unauthorized: The policies failed: invalid input syntax for type uuid: "seven"\.$/
    const { reply: rejected } = await raw.join('realtime:room:seven', isPrivate)
    t.match(rejected.payload, { status: 'error', response: { reason: invalid } })
    const { reply: withZero } = await raw.join('realtime:room:\0', isPrivate)
    t.match(withZero.payload, { status: 'error', response: { reason: /^Unauthorized: The policies failed: / } })
    const one = await tenant.request('POST', '/realtime/v1/api/broadcast/room:seven/events/x?private=true', {
      as: 'ada',
      body: {},
    })
    t.match([one.status, one.json()], [400, { code: 'BAD_REQUEST', message: /invalid input syntax for type uuid/ }])
    const messages = [valid.slice('realtime:'.length), 'room:seven', 'room:\0', valid.slice('realtime:'.length)]
    const batch = await tenant.request('POST', '/realtime/v1/api/broadcast', {
      as: 'ada',
      body: { messages: messages.map((name, n) => ({ topic: name, event: 'x', payload: n, private: true })) },
    })
    t.equal(batch.status, 202)
    await until(() => raw.of('broadcast').length === 2, 'the messages that are allowed')
    t.same(
      raw.of('broadcast').map(({ payload }) => payload['payload']),
      [0, 3],
    )
    await runSql(
      tenant,
      'drop policy members on realtime_messages',
      `create policy broken on realtime_messages using (1 / (octet_length(realtime_topic()) - octet_length(realtime_topic())) = 1)`,
    )
    raw.send(valid, 'access_token', { access_token: tenant.token('ben') }, ref)
    await raw.until(({ event }) => event === 'phx_close', 'the end of the channel')
    t.match(raw.of('system').at(-1)?.payload, { message: 'Unauthorized: The policies failed: division by zero.' })
    raw.leave()
  })

  t.test('By HTTP, one message that is not allowed is rejected, and in a batch it is dropped', async (t) => {
    const tenant = await runtime.addTenant()
    await runSql(tenant, await messagesSql(), policies)
    const { raw } = await join(tenant, 'ben')
    const one = (caller: string) =>
      tenant.request('POST', '/realtime/v1/api/broadcast/room-ada/events/x?private=true', {
        as: caller,
        body: { n: 1 },
      })
    t.match((await one('ben')).json(), { code: 'ROW_DENIED' })
    t.equal((await one('ada')).status, 202)
    const batch = (caller: string) =>
      tenant.request('POST', '/realtime/v1/api/broadcast', {
        as: caller,
        body: { messages: [{ topic: 'room-ada', event: 'y', payload: caller, private: true }] },
      })
    t.same([(await batch('ben')).status, (await batch('ada')).status], [202, 202])
    await until(() => raw.of('broadcast').length === 2)
    t.same(
      raw.of('broadcast').map(({ payload }) => payload['payload']),
      [{ n: 1 }, 'ada'],
    )
    raw.leave()
  })

  t.test('SQL sends broadcasts when its transaction commits, also from triggers', async (t) => {
    const tenant = await runtime.addTenant()
    await runSql(
      tenant,
      await messagesSql(),
      policies,
      'create table cards (id int primary key, title text)',
      `create function cards_changed() returns trigger language plpgsql security definer set search_path from current as $$
       begin
         perform realtime_broadcast_changes('room-ada', tg_op, tg_op, tg_table_name, tg_table_schema, new, old);
         return null;
       end $$`,
      'create trigger changed after insert or delete on cards for each row execute function cards_changed()',
    )
    const ada = await join(tenant, 'ada')
    const open = await RawSocket.open(tenant)
    await open.join(topic)
    await runSql(
      tenant,
      `begin; select realtime_send('{"n": 1}', 'lost', 'room-ada'); rollback`,
      `begin; select realtime_send('{"n": 2}', 'sent', 'room-ada'); insert into cards values (1, 'one'); commit`,
      `select realtime_send('[]', 'open', 'room-ada', false); delete from cards`,
    )
    await until(() => ada.raw.of('broadcast').length === 3 && open.of('broadcast').length === 1)
    t.match(
      ada.raw.of('broadcast').map(({ payload }) => payload),
      [
        { event: 'sent', payload: { n: 2 }, meta: { id: /^\d+$/ } },
        {
          event: 'INSERT',
          payload: { operation: 'INSERT', table: 'cards', record: { id: 1, title: 'one' }, old_record: null },
        },
        { event: 'DELETE', payload: { record: null, old_record: { id: 1 } } },
      ],
    )
    t.match(open.of('broadcast')[0]?.payload, { event: 'open', payload: [] })
    const { status } = await tenant.request('POST', '/rest/v1/rpc/realtime_send', { as: 'ada', body: {} })
    t.not(status, 200, 'users cannot call it')
    for (const raw of [ada.raw, open]) raw.leave()
  })

  t.test("Supabase's functions of the schema realtime work in policies, triggers and SQL", async (t) => {
    const tenant = await runtime.addTenant()
    await runSql(
      tenant,
      await messagesSql(),
      `create policy receivers on realtime_messages for select using (realtime.topic() = 'room-' || ${userId})`,
      'create table cards (id int primary key, title text)',
      `create function cards_changed() returns trigger security definer language plpgsql as $$
       begin
         perform realtime.broadcast_changes(
           'room-' || coalesce(new.title, old.title), tg_op, tg_op, tg_table_name, tg_table_schema, new, old);
         return null;
       end $$`,
      'create trigger changed after insert or update or delete on cards for each row execute function cards_changed()',
    )
    const ada = await join(tenant, 'ada')
    const open = await RawSocket.open(tenant)
    await open.join(topic)
    const ben = await join(tenant, 'ben')
    t.match(ben.reply.payload, { status: 'error', response: { reason: /^Unauthorized: The policies/ } })
    await runSql(
      tenant,
      `select realtime.send('{"n": 1}', 'sent', 'room-ada')`,
      `select realtime.send(jsonb_build_object('n', 2), 'open', 'room-ada', false)`,
      `insert into cards values (1, 'ada')`,
    )
    await until(() => ada.raw.of('broadcast').length === 2 && open.of('broadcast').length === 1)
    t.match(
      ada.raw.of('broadcast').map(({ payload }) => payload),
      [
        { event: 'sent', payload: { n: 1 } },
        {
          event: 'INSERT',
          payload: {
            table: 'cards',
            schema: tenant.home.tenantId,
            operation: 'INSERT',
            record: { id: 1, title: 'ada' },
            old_record: null,
          },
        },
      ],
    )
    t.match(open.of('broadcast')[0]?.payload, { event: 'open', payload: { n: 2 } })
    for (const { raw } of [ada, ben]) raw.leave()
    open.leave()
  })

  t.test('A channel reports that broadcasts from SQL flow, if its client wants to know', async (t) => {
    const tenant = await runtime.addTenant()
    const raw = await RawSocket.open(tenant)
    await raw.join(topic, { broadcast: { replication_ready: true } })
    t.match((await raw.until(({ event }) => event === 'system', 'the report')).payload, {
      status: 'ok',
      message: 'Replication connection established',
    })
    raw.leave()
  })

  t.test('Nothing of all this was logged as an error', async (t) => t.same(runtime.errors, []))
})
