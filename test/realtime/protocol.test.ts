// Behaviour of the protocol that clients depend on, in raw frames: one test for each.
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { runSql } from './support/follow-changes.ts'
import { createNotes, insertNote } from './support/notes.ts'
import { RawSocket } from './support/raw-socket.ts'

const topic = 'realtime:room'

/** Makes a binary frame of a broadcast: kind 3, with the lengths of the texts in one byte each. */
function binaryBroadcast(fields: { joinRef?: string; ref?: string; event: string; meta?: string }, payload: Buffer) {
  const { joinRef = '', ref = '', event, meta = '' } = fields
  const texts = [joinRef, ref, topic, event, meta].map((text) => Buffer.from(text))
  return Buffer.concat([Buffer.from([3, ...texts.map(({ length }) => length), 0]), ...texts, payload])
}

t.test('Protocol', async (t) => {
  const runtime = await startRuntime(t)

  t.test('Frames with an old reference of a join are dropped, whatever their event', async (t) => {
    const tenant = await runtime.addTenant()
    const raw = await RawSocket.open(tenant)
    const config = { broadcast: { self: true, ack: true }, presence: { enabled: true, key: 'ada' } }
    const first = await raw.join(topic, config)
    const second = await raw.join(topic, config)
    const before = raw.frames.length
    raw.send(topic, 'broadcast', { event: 'x', payload: 1 }, first.ref)
    raw.sendBytes(binaryBroadcast({ joinRef: first.ref, ref: '90', event: 'x' }, Buffer.from('1')))
    raw.send(topic, 'presence', { event: 'track', payload: {} }, first.ref)
    raw.send(topic, 'access_token', { access_token: 'a.b.c' }, first.ref)
    raw.send(topic, 'unknown', {}, first.ref)
    // Its reply comes, but it does not end the newer channel.
    raw.send(topic, 'phx_leave', {}, first.ref)
    await raw.call('phoenix', 'heartbeat', {})
    t.same(
      raw.frames.slice(before).map(({ event, joinRef }) => [event, joinRef]),
      [
        ['phx_reply', first.ref],
        ['phx_reply', null],
      ],
    )
    t.match(await raw.call(topic, 'broadcast', { event: 'new', payload: 1 }, second.ref), { payload: { status: 'ok' } })
    t.same(raw.binary, [])
    raw.leave()
  })

  t.test('A message "access_token" never gets a reply, whether it is valid, ignored or not valid', async (t) => {
    const tenant = await runtime.addTenant()
    const raw = await RawSocket.open(tenant)
    const token = tenant.token('ada')
    const { ref } = await raw.join(topic, {}, { access_token: token })
    const before = raw.frames.length
    const ignored = [token, null, undefined, 7, '', tenant.publishableKey, tenant.secretKey, tenant.token('ben')]
    const refs = ignored.map((access_token) => raw.send(topic, 'access_token', { access_token }, ref))
    refs.push(raw.send(topic, 'access_token', null, ref))
    await raw.call('phoenix', 'heartbeat', {})
    t.same(
      raw.frames.slice(before).map(({ topic: name }) => name),
      ['phoenix'],
    )
    refs.push(raw.send(topic, 'access_token', { access_token: 'a.b.c' }, ref))
    await raw.until(({ event }) => event === 'phx_close', 'the end of the channel')
    t.same(
      raw.frames.filter(({ event, ref: replied }) => event === 'phx_reply' && refs.includes(replied ?? '')),
      [],
    )
    raw.leave()
  })

  t.test('An API key does not replace the token of a channel', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant, { policy: 'ownership' })
    const raw = await RawSocket.open(tenant)
    const changes = [{ event: '*', schema: 'public', table: 'notes' }]
    const { ref } = await raw.join(topic, { postgres_changes: changes }, { access_token: tenant.token('ada') })
    for (const access_token of [tenant.secretKey, tenant.publishableKey, null])
      raw.send(topic, 'access_token', { access_token }, ref)
    await insertNote(tenant, 'ben', { text: 'his' })
    await insertNote(tenant, 'ada', { text: 'hers' })
    await until(() => raw.of('postgres_changes').length > 0, 'a change')
    t.match(
      raw.of('postgres_changes').map(({ payload }) => payload),
      [{ data: { record: { text: 'hers' } } }],
    )
    t.equal(raw.of('postgres_changes').length, 1)
    raw.leave()
  })

  t.test('Presence: the same payload is no change, another one replaces the entry', async (t) => {
    const tenant = await runtime.addTenant()
    const [raw, other] = [await RawSocket.open(tenant), await RawSocket.open(tenant)]
    await other.join(topic, { presence: { enabled: true } })
    const { ref } = await raw.join(topic, { presence: { enabled: true, key: 'ada' } })
    const track = (payload: object) => raw.call(topic, 'presence', { event: 'track', payload }, ref)
    for (const payload of [{ n: 1 }, { n: 1 }]) t.match(await track(payload), { payload: { status: 'ok' } })
    await until(() => other.of('presence_diff').length === 1, 'the arrival')
    await track({ n: 1 })
    await track({ n: 2 })
    await until(() => other.of('presence_diff').length === 2, 'the update')
    const [first, second] = other.of('presence_diff').map(({ payload }) => payload)
    t.match(first, { joins: { ada: { metas: [{ n: 1, phx_ref: String }] } }, leaves: {} })
    t.match(second, { joins: { ada: { metas: [{ n: 2 }] } }, leaves: { ada: { metas: [{ n: 1 }] } } })
    await track({ n: 2 })
    await raw.call('phoenix', 'heartbeat', {})
    raw.leave()
    await until(() => other.of('presence_diff').length === 3, 'the departure')
    t.match(other.of('presence_diff')[2]?.payload, { joins: {}, leaves: { ada: { metas: [{ n: 2 }] } } })
    other.leave()
  })

  t.test('Presence that is removed right after it came reaches others as an arrival and a departure', async (t) => {
    const tenant = await runtime.addTenant()
    const [raw, other] = [await RawSocket.open(tenant), await RawSocket.open(tenant)]
    await other.join(topic, { presence: { enabled: true } })
    const { ref } = await raw.join(topic, { presence: { key: 'ada' } })
    raw.send(topic, 'presence', { event: 'track', payload: {} }, ref)
    raw.send(topic, 'presence', { event: 'untrack' }, ref)
    await until(() => other.of('presence_diff').length === 2, 'both messages')
    t.same(
      other
        .of('presence_diff')
        .map(({ payload }) => Object.values(payload).map((entries) => Object.keys(entries as object))),
      [
        [['ada'], []],
        [[], ['ada']],
      ],
    )
    for (const each of [raw, other]) each.leave()
  })

  t.test('"presence_state" arrives only on channels that have presence, even without entries', async (t) => {
    const tenant = await runtime.addTenant()
    const raw = await RawSocket.open(tenant)
    await raw.join('realtime:without', { presence: { key: 'ada', enabled: false } })
    await raw.join('realtime:with', { presence: { enabled: true } })
    await raw.call('phoenix', 'heartbeat', {})
    t.match(raw.of('presence_state'), [{ topic: 'realtime:with', payload: {} }])
    t.equal(raw.of('presence_state').length, 1)
    raw.leave()
  })

  t.test(
    'Texts in the header of a binary frame have up to 255 bytes, and longer topics cannot be joined',
    async (t) => {
      const tenant = await runtime.addTenant()
      const maxTopic = `realtime:${'é'.repeat(123)}`
      t.equal(Buffer.byteLength(maxTopic), 255)
      const [raw, other] = [await RawSocket.open(tenant), await RawSocket.open(tenant)]
      const { ref } = await raw.join(maxTopic, { broadcast: { self: true } })
      await other.join(maxTopic)
      const event = 'e'.repeat(255)
      const texts = [ref, '9'.repeat(255 - ref.length), maxTopic, event, ''].map((text) => Buffer.from(text))
      const head = Buffer.from([3, ...texts.map(({ length }) => length), 0])
      raw.sendBytes(Buffer.concat([head, ...texts, Buffer.from([1, 2, 255])]))
      await until(() => raw.binary.length === 1 && other.binary.length === 1, 'the broadcast')
      for (const [frame] of [raw.binary, other.binary]) {
        t.same([...(frame?.subarray(0, 5) ?? [])], [4, 255, 255, 0, 0])
        t.equal(frame?.subarray(5, 260).toString(), maxTopic)
        t.equal(frame?.subarray(260, 515).toString(), event)
        t.same([...(frame?.subarray(515) ?? [])], [1, 2, 255])
      }
      const { reply } = await raw.join(`${maxTopic}x`)
      t.match(reply.payload, { status: 'error', response: { reason: /^UnmatchedTopic: .* 246 bytes/ } })
      for (const each of [raw, other]) each.leave()
    },
  )

  t.test('A text frame whose event has more than 255 bytes reaches others as JSON', async (t) => {
    const tenant = await runtime.addTenant()
    const raw = await RawSocket.open(tenant)
    const { ref } = await raw.join(topic, { broadcast: { self: true } })
    const event = 'é'.repeat(200)
    raw.send(topic, 'broadcast', { event, payload: { n: 1 } }, ref)
    await until(() => raw.of('broadcast').length === 1, 'the broadcast')
    t.match(raw.of('broadcast')[0]?.payload, { event, payload: { n: 1 } })
    raw.leave()
  })

  t.test('A socket of version 1.0.0 never receives binary frames, and receives JSON of binary senders', async (t) => {
    const tenant = await runtime.addTenant()
    const old = await RawSocket.open(tenant, { version: '1.0.0' })
    const raw = await RawSocket.open(tenant)
    await old.join(topic)
    const { ref } = await raw.join(topic, { broadcast: { self: true } })
    raw.sendBytes(binaryBroadcast({ joinRef: ref, event: 'bytes' }, Buffer.from([1, 2])))
    await tenant.request('POST', '/realtime/v1/api/broadcast/room/events/bytes', {
      as: 'service',
      headers: { 'content-type': 'application/octet-stream' },
      body: Buffer.from([3]),
    })
    const json = binaryBroadcast({ joinRef: ref, event: 'json' }, Buffer.from('{"n":1}'))
    json[6] = 1
    raw.sendBytes(json)
    await until(() => old.of('broadcast').length === 1 && raw.binary.length === 2, 'the broadcasts')
    t.match(old.of('broadcast')[0]?.payload, { event: 'json', payload: { n: 1 } })
    await old.call('phoenix', 'heartbeat', {})
    t.same(old.binary, [])
    for (const each of [old, raw]) each.leave()
  })

  t.test('A broadcast gets a reply only with "ack" of its channel, not because it has a reference', async (t) => {
    const tenant = await runtime.addTenant()
    const raw = await RawSocket.open(tenant)
    const { ref } = await raw.join(topic, { broadcast: { self: true } })
    const sent = raw.send(topic, 'broadcast', { event: 'x', payload: 1 }, ref)
    await raw.until(({ event }) => event === 'broadcast', 'the broadcast')
    await raw.call('phoenix', 'heartbeat', {})
    t.notOk(raw.frames.some(({ event, ref: replied }) => event === 'phx_reply' && replied === sent))
    raw.leave()
  })

  t.test('A channel that the server ends gets "system" and then "phx_close", with its own reference', async (t) => {
    const tenant = await runtime.addTenant()
    const raw = await RawSocket.open(tenant)
    const { ref } = await raw.join(topic)
    raw.send(topic, 'access_token', { access_token: 'a.b.c' }, ref)
    await raw.until(({ event }) => event === 'phx_close', 'the end of the channel')
    t.match(raw.frames.slice(-2), [
      { event: 'system', topic, joinRef: ref, payload: { extension: 'system', status: 'error', channel: 'room' } },
      { event: 'phx_close', topic, joinRef: ref },
    ])
    t.match((await raw.join(topic)).reply.payload, { status: 'ok' })
    raw.leave()
  })

  t.test('IDs of subscriptions are greater than 0, and the reply has their members as they were sent', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant)
    const raw = await RawSocket.open(tenant)
    const wanted = [
      { event: '*', schema: 'public', table: 'notes', filter: 'n=gt.1' },
      { event: '*', schema: 'public', table: 'notes' },
      { event: '*', schema: 'public', table: 'notes' },
    ]
    const { reply } = await raw.join(topic, { postgres_changes: wanted })
    const { postgres_changes: listed } = reply.payload['response'] as { postgres_changes: { id: number }[] }
    t.same(
      listed.map(({ id, ...members }) => ({ ...members, isValid: id > 0 && Number.isSafeInteger(id) })),
      wanted.map((members) => ({ ...members, isValid: true })),
    )
    t.equal(new Set(listed.map(({ id }) => id)).size, 3)
    raw.leave()
  })

  t.test('A subscription without a schema is for the tenant’s own', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant)
    const raw = await RawSocket.open(tenant)
    t.match((await raw.join(topic, { postgres_changes: [{ event: '*', table: 'notes' }] })).reply.payload, {
      status: 'ok',
    })
    await insertNote(tenant, 'ada', { text: 'one' })
    await until(() => raw.of('postgres_changes').length === 1, 'the change')
    t.match(raw.of('postgres_changes')[0]?.payload, { data: { schema: 'public', table: 'notes' } })
    raw.leave()
  })

  t.test('"postgres_changes_options" is accepted: changes flow when the reply to the join comes', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant)
    for (const options of [{ wait: true }, { wait: true, timeout: 20_000 }, { wait: false }, { timeout: 60_000 }, {}]) {
      const raw = await RawSocket.open(tenant)
      const { reply } = await raw.join(topic, {
        postgres_changes: [{ event: 'INSERT', schema: 'public', table: 'notes' }],
        postgres_changes_options: options,
      })
      t.match(reply.payload, { status: 'ok' })
      await insertNote(tenant, 'ada', { text: 'after the reply' })
      await until(() => raw.of('postgres_changes').length === 1, 'the change')
      raw.leave()
    }
  })

  t.test('An update above 1 MiB has its key and an error, a deletion of the record has no error', async (t) => {
    const tenant = await runtime.addTenant()
    await createNotes(tenant)
    const raw = await RawSocket.open(tenant)
    const id = await insertNote(tenant, 'ada', { text: 'small' })
    await raw.join(topic, { postgres_changes: [{ event: '*', schema: 'public', table: 'notes' }] })
    await runSql(
      tenant,
      `update notes set data = jsonb_build_object('text', repeat('x', 1100000))`,
      'delete from notes',
    )
    await until(() => raw.of('postgres_changes').length === 2, 'the changes')
    const [updated, deleted] = raw.of('postgres_changes').map(({ payload }) => payload['data'])
    t.match(updated, { type: 'UPDATE', old_record: { id }, errors: ['Error 413: Payload Too Large'] })
    t.same((updated as { record: object }).record, { id })
    t.match(deleted, { type: 'DELETE', old_record: { id }, errors: null })
    raw.leave()
  })

  t.test('Nothing of all this was logged as an error', async (t) => t.same(runtime.errors, []))
})
