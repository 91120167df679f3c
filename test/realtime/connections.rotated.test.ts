// Raw frames: what the server replies, drops and closes, and the limits of channels.
import { once } from 'node:events'
import http from 'node:http'
import t from 'tap'
import { WebSocket } from 'ws'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { runSql } from './support/follow-changes.ts'
import { createNotes } from './support/notes.ts'
import { RawSocket } from './support/raw-socket.ts'

const topic = 'realtime:room'

async function rejection(tenant: TestTenant, query: string) {
  const { status, text } = await tenant.request('GET', `/realtime/v1/websocket${query}`, {
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'MDEyMzQ1Njc4OWFiY2RlZg==',
    },
  })
  return { status, ...(JSON.parse(text) as Record<string, unknown>) }
}

t.test('Connections', async (t) => {
  const runtime = await startRuntime(t)

  t.test('A connection without a valid key gets a normal error response', async (t) => {
    const tenant = await runtime.addTenant()
    t.match(await rejection(tenant, '?vsn=2.0.0'), { status: 401, code: 'UNAUTHORIZED', error: 'Unauthorized' })
    t.match(await rejection(tenant, '?apikey=tn_publishable_other'), { status: 401, code: 'INVALID_TOKEN' })
    const expired = tenant.token('ada', { exp: Math.floor(runtime.clock.now() / 1000) - 60 })
    t.match(await rejection(tenant, `?apikey=${expired}`), { status: 401, message: 'The token has expired.' })
    t.match(await rejection(tenant, `?apikey=${tenant.publishableKey}&vsn=3.0.0`), {
      status: 400,
      message: 'Unknown protocol version in "vsn". Allowed: 1.0.0, 2.0.0.',
    })
    const plain = await tenant.request('GET', `/realtime/v1/websocket?apikey=${tenant.publishableKey}`)
    t.match(plain.json(), { code: 'BAD_REQUEST', message: /serves WebSockets only/ })
  })

  for (const version of ['1.0.0', '2.0.0'] as const)
    t.test(`Version ${version}: heartbeats, joins, leaves and wrong messages get their replies`, async (t) => {
      const tenant = await runtime.addTenant()
      const raw = await RawSocket.open(tenant, { version })
      t.match(await raw.call('phoenix', 'heartbeat', {}), { topic: 'phoenix', payload: { status: 'ok', response: {} } })
      for (const name of ['room', 'realtime:', `realtime:${'x'.repeat(247)}`]) {
        const { reply } = await raw.join(name)
        t.match(reply.payload, { status: 'error', response: { reason: /^UnmatchedTopic: / } }, name)
      }
      t.match((await raw.call(topic, 'broadcast', { event: 'x' })).payload, {
        status: 'error',
        response: { reason: /^NotJoined: / },
      })
      const wrong = await raw.call(topic, 'phx_join', { config: { broadcast: { ack: 'yes' } } })
      t.match(wrong.payload, { status: 'error', response: { reason: /^InvalidJoinPayload: .*\/config\/broadcast/ } })
      const { ref, reply } = await raw.join(topic, { broadcast: { ack: true } })
      t.match(reply, { joinRef: ref, ref, topic, payload: { status: 'ok', response: { postgres_changes: [] } } })
      t.match((await raw.call(topic, 'dance', {}, ref)).payload, { response: { reason: /^UnknownEvent: .*"dance"/ } })
      t.match((await raw.call(topic, 'broadcast', { no: 1 }, ref)).payload, {
        response: { reason: /^InvalidPayload: / },
      })
      t.match((await raw.call(topic, 'presence', { event: 'track', payload: 7 }, ref)).payload, {
        response: { reason: /^InvalidPayload: / },
      })
      t.match((await raw.call(topic, 'broadcast', { event: 'x', payload: {} }, ref)).payload, { status: 'ok' })
      t.match((await raw.call(topic, 'phx_leave', {}, ref)).payload, { status: 'ok' })
      t.match(raw.of('phx_close'), [{ joinRef: ref, topic }])
      t.match((await raw.call(topic, 'phx_leave', {}, ref)).payload, { status: 'ok' }, 'leaving twice is no error')
      raw.leave()
    })

  t.test('A second join of a topic ends the first, whose messages are dropped', async (t) => {
    const tenant = await runtime.addTenant()
    const raw = await RawSocket.open(tenant)
    const first = await raw.join(topic, { broadcast: { self: true } })
    const second = await raw.join(topic, { broadcast: { self: true, ack: true } })
    t.match(raw.of('phx_close'), [{ joinRef: first.ref }])
    raw.send(topic, 'broadcast', { event: 'old', payload: {} }, first.ref)
    await raw.call(topic, 'broadcast', { event: 'new', payload: {} }, second.ref)
    t.same(
      raw.of('broadcast').map(({ payload }) => payload['event']),
      ['new'],
    )
    raw.leave()
  })

  t.test('A frame that cannot be read ends the connection with its reason', async (t) => {
    const tenant = await runtime.addTenant()
    const cases: [string | Buffer, '1.0.0' | '2.0.0', number, RegExp][] = [
      ['{', '2.0.0', 1007, /not JSON/],
      ['[1,2]', '2.0.0', 1007, /array of five members/],
      ['[]', '1.0.0', 1007, /object with topic/],
      ['[null,"1",7,"x",{}]', '2.0.0', 1007, /topic and the event/],
      ['[{},"1","a","b",{}]', '2.0.0', 1007, /references/],
      [`[null,"${'1'.repeat(256)}","a","b",{}]`, '2.0.0', 1007, /at most 255 characters/],
      [`[null,"1","a","b",${'['.repeat(100)}${']'.repeat(100)}]`, '2.0.0', 1007, /nested deeper/],
      [Buffer.from([3, 0, 0]), '1.0.0', 1003, /has no binary frames/],
      [Buffer.from([9, 0, 0]), '2.0.0', 1003, /Unknown kind 9/],
      [Buffer.from([3, 0, 0]), '2.0.0', 1007, /ends in its header/],
      [Buffer.from([3, 0, 0, 200, 0, 0, 1, 65]), '2.0.0', 1007, /ends in its header/],
      [Buffer.from([3, 0, 0, 1, 1, 0, 1, 65, 66, 123]), '2.0.0', 1007, /not JSON/],
      [Buffer.from([3, 0, 0, 1, 1, 0, 7, 65, 66]), '2.0.0', 1007, /Unknown encoding 7/],
      [Buffer.from([3, 0, 0, 1, 1, 0, 0, 0xff, 66]), '2.0.0', 1007, /not UTF-8/],
    ]
    for (const [frame, version, code, reason] of cases) {
      const raw = await RawSocket.open(tenant, { version })
      raw.socket.send(frame)
      t.match(await raw.untilClosed(), { code, reason }, String(reason))
    }
  })

  t.test('A message above the limit of the plan is rejected, and a much larger one ends the connection', async (t) => {
    const tenant = await runtime.addTenant({ limits: { realtime_payload_bytes: 20_000 } })
    const raw = await RawSocket.open(tenant)
    const { ref } = await raw.join(topic, { broadcast: { ack: true } })
    const reply = await raw.call(topic, 'broadcast', { event: 'x', payload: 'y'.repeat(20_000) }, ref)
    t.match(reply.payload, {
      status: 'error',
      response: { reason: 'PayloadTooLarge: The plan allows payloads of 20000 bytes.' },
    })
    const large = await tenant.request('POST', '/realtime/v1/api/broadcast/room/events/x', {
      as: 'service',
      body: Buffer.from(JSON.stringify('y'.repeat(20_000))),
      headers: { 'content-type': 'application/json' },
    })
    t.match([large.status, large.json()], [413, { code: 'BODY_TOO_LARGE' }])
    raw.send(topic, 'broadcast', { event: 'x', payload: 'y'.repeat(80_000) }, ref)
    t.match(await raw.untilClosed(), { code: 1009 })
  })

  t.test('Messages above the rate end the channel with an error, after which a client may join again', async (t) => {
    const tenant = await runtime.addTenant({ limits: { realtime_messages: 10 } })
    const raw = await RawSocket.open(tenant)
    const { ref } = await raw.join(topic)
    for (let n = 0; n < 20; n++) raw.send(topic, 'broadcast', { event: 'x', payload: n }, ref)
    await raw.until(({ event }) => event === 'phx_error', 'the end of the channel')
    t.match(raw.of('system').at(-1)?.payload, {
      status: 'error',
      message: /^MessagePerSecondRateLimitReached: The plan allows 10 messages per second/,
    })
    for (let n = 0; n < 20; n++) raw.send(`realtime:${n}`, 'phx_join', {})
    await raw.until(
      ({ payload }) => JSON.stringify(payload).includes('"ClientJoinRateLimitReached: '),
      'a rejected join',
    )
    raw.leave()
    const responses = await Promise.all(
      Array.from({ length: 20 }, () =>
        tenant.request('POST', '/realtime/v1/api/broadcast', {
          as: 'service',
          body: { messages: [{ topic: 'room', event: 'x', payload: 1 }] },
        }),
      ),
    )
    t.ok(responses.some(({ status, headers }) => status === 429 && headers['retry-after'] === '1'))
  })

  t.test('A batch by HTTP is sent as a whole or not at all, and only with a valid key', async (t) => {
    const tenant = await runtime.addTenant({ limits: { realtime_messages: 10 } })
    const raw = await RawSocket.open(tenant)
    await raw.join(topic)
    const batch = (count: number, headers: Record<string, string>) =>
      tenant.request('POST', '/realtime/v1/api/broadcast', {
        headers,
        body: { messages: Array.from({ length: count }, (_, n) => ({ topic: 'room', event: 'x', payload: n })) },
      })
    const key = { apikey: tenant.publishableKey }
    t.match([(await batch(1, {})).status, (await batch(1, { apikey: 'x' })).status], [401, 401])
    t.equal((await batch(6, key)).status, 202)
    t.equal((await batch(6, key)).status, 429)
    await until(() => raw.of('broadcast').length === 6)
    await raw.call('phoenix', 'heartbeat', {})
    t.equal(raw.of('broadcast').length, 6)
    raw.leave()
  })

  t.test('The presence of a topic has a limit of bytes, which a client can still join', async (t) => {
    const tenant = await runtime.addTenant()
    const sockets = await Promise.all(Array.from({ length: 66 }, () => RawSocket.open(tenant)))
    const replies = []
    for (const raw of sockets) {
      const { ref } = await raw.join(topic)
      replies.push(await raw.call(topic, 'presence', { event: 'track', payload: { text: 'ä'.repeat(8_100) } }, ref))
    }
    t.match(replies[0]?.payload, { status: 'ok' })
    t.match(replies.at(-1)?.payload, { status: 'error', response: { reason: /^PresenceFull: / } })
    const raw = await RawSocket.open(tenant)
    const { ref } = await raw.join(topic, { presence: { enabled: true } })
    const large = await raw.call(topic, 'presence', { event: 'track', payload: { text: 'ä'.repeat(9_000) } }, ref)
    t.match(large.payload, { response: { reason: /^PayloadTooLarge: .* 16384 bytes/ } })
    t.ok(Object.keys(raw.of('presence_state')[0]?.payload ?? {}).length > 60)
    for (const each of [...sockets, raw]) each.leave()
  })

  t.test('A flood of frames ends the connection, and others of the tenant continue', async (t) => {
    const tenant = await runtime.addTenant({ limits: { realtime_messages: 100 } })
    const [flooding, other] = [await RawSocket.open(tenant), await RawSocket.open(tenant)]
    for (let n = 0; n < 1_000; n++) flooding.send('phoenix', 'heartbeat', {})
    t.match(await flooding.untilClosed(), { code: 1008, reason: /^TooManyFrames: / })
    t.match(await other.call('phoenix', 'heartbeat', {}), { payload: { status: 'ok' } })
    other.leave()
  })

  for (const kind of ['ping', 'pong'] as const)
    t.test(`A flood of frames of the kind ${kind} ends the connection`, async (t) => {
      const raw = await RawSocket.open(await runtime.addTenant({ limits: { realtime_messages: 100 } }))
      const sending = setInterval(() => {
        for (let n = 0; n < 500 && raw.socket.readyState === WebSocket.OPEN; n++) raw.socket[kind]()
      }, 10)
      t.match(await raw.untilClosed(), { code: 1008, reason: /^TooManyFrames: / })
      clearInterval(sending)
    })

  t.test('A connection has at most 100 channels', async (t) => {
    const tenant = await runtime.addTenant()
    const raw = await RawSocket.open(tenant)
    for (let n = 0; n < 100; n++) t.match((await raw.join(`realtime:${n}`)).reply.payload, { status: 'ok' })
    const { reply } = await raw.join('realtime:one more')
    t.match(reply.payload, { status: 'error', response: { reason: /^ChannelRateLimitReached: .* 100 channels/ } })
    t.match((await raw.join('realtime:7')).reply.payload, { status: 'ok' }, 'a topic may be joined again')
    raw.leave()
  })

  t.test('A channel ends when its token expires, and continues with a new one', async (t) => {
    const tenant = await runtime.addTenant()
    const expiring = (seconds: number) => tenant.token('ada', { exp: Math.floor(runtime.clock.now() / 1000) + seconds })
    const raw = await RawSocket.open(tenant)
    const { ref } = await raw.join(topic, {}, { access_token: expiring(30) })
    await raw.join('realtime:other', {}, { access_token: expiring(30) })
    raw.send(topic, 'access_token', { access_token: expiring(3_000) }, ref)
    raw.send(topic, 'access_token', { access_token: null }, ref)
    raw.send(topic, 'access_token', { access_token: tenant.publishableKey }, ref)
    await raw.call('phoenix', 'heartbeat', {})
    runtime.clock.ahead += 40_000
    await raw.until(({ event }) => event === 'phx_close', 'the end of a channel')
    t.match(raw.of('phx_close'), [{ topic: 'realtime:other' }])
    t.match(raw.of('system').at(-1)?.payload, { message: 'TokenExpired: The token has expired.' })
    raw.send(topic, 'access_token', { access_token: 'a.b.c' }, ref)
    await until(() => raw.of('phx_close').length === 2)
    t.match(raw.of('system').at(-1)?.payload, { message: /^TokenRevoked: / })
    raw.leave()
  })

  t.test('A rotation ends the connections of the former key and the channels of the former secret', async (t) => {
    const tenant = await runtime.addTenant()
    const withKey = await RawSocket.open(tenant)
    const withSecret = await RawSocket.open(tenant, { key: tenant.secretKey })
    await withSecret.join(topic, {}, { access_token: tenant.token('ada') })
    const { keys } = tenant.manifest
    tenant.change({ keys: keys.filter(({ kind }) => kind === 'secret'), jwt_secrets: ['s'.repeat(40)] })
    t.match(await withKey.untilClosed(), { code: 1008, reason: /^KeyRevoked: / })
    await withSecret.until(({ event }) => event === 'phx_close', 'the end of the channel')
    t.match(withSecret.of('system').at(-1)?.payload, { message: /^TokenRevoked: / })
    t.match(await withSecret.call('phoenix', 'heartbeat', {}), { payload: { status: 'ok' } })
    withSecret.leave()
  })

  t.test('After the overlap of a rotation, what uses the former key or secret ends', async (t) => {
    const tenant = await runtime.addTenant()
    const { keys, jwt_secrets: former } = tenant.manifest
    const end = new Date(runtime.clock.now() + 30_000).toISOString()
    const formerToken = tenant.token('ada')
    tenant.change({
      keys: keys.map((key) => (key.kind === 'publishable' ? { ...key, expires_at: end } : key)),
      jwt_secrets: ['s'.repeat(40), ...former],
      jwt_secret_expiries: [null, end],
    })
    const withKey = await RawSocket.open(tenant)
    const withSecret = await RawSocket.open(tenant, { key: tenant.secretKey })
    t.match((await withSecret.join(topic, {}, { access_token: formerToken })).reply.payload, { status: 'ok' })
    t.match((await withSecret.join('realtime:new', {}, { access_token: tenant.token('ada') })).reply.payload, {
      status: 'ok',
    })
    t.match((await withKey.join(topic)).reply.payload, { status: 'ok' })
    runtime.clock.ahead += 32_000
    t.match(await withKey.untilClosed(), { code: 1008, reason: /^KeyRevoked: / })
    t.match(withKey.of('system').at(-1)?.payload, { status: 'error', message: /^KeyRevoked: / })
    await withSecret.until(({ event }) => event === 'phx_close', 'the end of the channel')
    t.match(withSecret.of('system').at(-1)?.payload, { message: /^TokenRevoked: / })
    await withSecret.call('phoenix', 'heartbeat', {})
    t.match(withSecret.of('phx_close'), [{ topic }])
    t.equal(withSecret.of('phx_close').length, 1, 'the other channel continues')
    withSecret.leave()
  })

  t.test('A request that began before a rotation does not let the former secret continue', async (t) => {
    const tenant = await runtime.addTenant()
    const former = tenant.token('ada')
    const request = http.request(`${tenant.url}/realtime/v1/api/broadcast`, {
      method: 'POST',
      headers: { apikey: tenant.publishableKey, 'content-type': 'application/json' },
    })
    const responded = once(request, 'response')
    const body = JSON.stringify({ messages: [{ topic: 'room', event: 'x', payload: 1 }] })
    request.write(body.slice(0, 10))
    // The responses to later requests show that the first one has arrived.
    for (let n = 0; n < 3; n++) await tenant.request('GET', '/rest/v1/schemas', { as: 'service' })
    tenant.change({ jwt_secrets: ['s'.repeat(40)] })
    request.end(body.slice(10))
    const [response] = (await responded) as [http.IncomingMessage]
    response.resume()
    t.equal(response.statusCode, 202)
    const raw = await RawSocket.open(tenant)
    const { reply } = await raw.join(topic, {}, { access_token: former })
    t.match(reply.payload, { status: 'error', response: { reason: /^Unauthorized: / } })
    raw.leave()
  })

  t.test('A connection whose own token expires ends', async (t) => {
    const tenant = await runtime.addTenant()
    const token = tenant.token('ada', { exp: Math.floor(runtime.clock.now() / 1000) + 30 })
    const [expiring, other] = [await RawSocket.open(tenant, { key: token }), await RawSocket.open(tenant)]
    t.match((await expiring.join(topic)).reply.payload, { status: 'ok' })
    runtime.clock.ahead += 40_000
    t.match(await expiring.untilClosed(), { code: 1008, reason: /^KeyRevoked: / })
    t.match(await other.call('phoenix', 'heartbeat', {}), { payload: { status: 'ok' } })
    other.leave()
  })

  t.test('A tenant that is deleted or served elsewhere has no connections', async (t) => {
    const tenant = await runtime.addTenant()
    const raw = await RawSocket.open(tenant)
    await raw.join(topic)
    tenant.remove()
    t.match(await raw.untilClosed(), { code: 1001, reason: /^TenantGone: / })
  })

  t.test('A client that reads nothing is disconnected, and others receive everything', async (t) => {
    const tenant = await runtime.addTenant()
    const [slow, reader, sender] = [
      await RawSocket.open(tenant),
      await RawSocket.open(tenant),
      await RawSocket.open(tenant),
    ]
    await slow.join(topic)
    await reader.join(topic)
    const { ref } = await sender.join(topic, { broadcast: { ack: true } })
    slow.socket.pause()
    const payload = 'x'.repeat(500_000)
    for (let n = 0; n < 60; n++) await sender.call(topic, 'broadcast', { event: 'x', payload: { n, payload } }, ref)
    await until(() => reader.of('broadcast').length === 60)
    slow.socket.resume()
    t.match(await slow.untilClosed(), { code: 1013, reason: 'SlowReader: Messages were not read in time.' })
    t.ok(slow.of('broadcast').length < 60)
    reader.leave()
    sender.leave()
  })

  t.test('Nobody receives messages of another tenant, of the same topic', async (t) => {
    const [acme, other] = [await runtime.addTenant(), await runtime.addTenant({ name: 'other' })]
    await createNotes(acme)
    await createNotes(other)
    const config = {
      broadcast: { ack: true },
      presence: { enabled: true },
      postgres_changes: [{ event: '*', schema: 'public', table: 'notes' }],
    }
    const [here, there] = [await RawSocket.open(acme), await RawSocket.open(other)]
    const { ref } = await here.join(topic, config)
    await there.join(topic, config)
    await here.call(topic, 'broadcast', { event: 'x', payload: 1 }, ref)
    await here.call(topic, 'presence', { event: 'track', payload: {} }, ref)
    await runSql(acme, 'insert into notes (n) values (1)')
    await until(() => here.of('postgres_changes').length === 1 && here.of('presence_diff').length === 1)
    await there.call('phoenix', 'heartbeat', {})
    t.same([there.of('broadcast'), there.of('presence_diff'), there.of('postgres_changes')], [[], [], []])
    here.leave()
    there.leave()
  })

  t.test('A client that is silent for a minute is disconnected', async (t) => {
    const tenant = await runtime.addTenant()
    const raw = await RawSocket.open(tenant)
    runtime.clock.ahead += 61_000
    t.match(await raw.untilClosed(), { code: 1001, reason: /^HeartbeatTimeout: / })
  })

  t.test('Nothing of all this was logged as an error', async (t) => t.same(runtime.errors, []))
})
