// Several runtimes of one tenant: broadcasts and presence reach the clients of all of them.
import { readFile } from 'node:fs/promises'
import fc from 'fast-check'
import { internalPaths, internalTokenHeader } from '@tenantry/contract'
import pg from 'pg'
import t from 'tap'
import { WebSocket } from 'ws'
import { effort, seed } from '#test/support/effort.ts'
import { internalToken } from '#test/support/tenant-proxy.ts'
import { until } from '#test/support/until.ts'
import { PresenceClient } from './support/presence-client.ts'
import { RawSocket } from './support/raw-socket.ts'
import { startSiblings, type SiblingRuntime } from './support/sibling-runtimes.ts'

const topic = 'realtime:room'

async function member(runtime: SiblingRuntime, config: object = {}, name = topic) {
  const raw = await RawSocket.open(runtime)
  const { ref, reply } = await raw.join(name, config)
  return { raw, ref, reply, send: (payload: unknown) => raw.send(name, 'broadcast', { event: 'x', payload }, ref) }
}

const payloads = (raw: RawSocket) => raw.of('broadcast').map(({ payload }) => payload['payload'])

t.test('Three runtimes', async (t) => {
  const scene = await startSiblings(t, 3)
  const [first, second, third] = scene.runtimes as [SiblingRuntime, SiblingRuntime, SiblingRuntime]

  t.test(
    'A broadcast reaches the clients of all runtimes once, in order, and its sender if it wants that',
    async (t) => {
      const ada = await member(first, { broadcast: { ack: true } })
      const ben = await member(second, { broadcast: { self: true, ack: true } })
      const cyd = await member(third)
      const other = await member(third, {}, 'realtime:other')
      for (let n = 0; n < 200; n++) ada.send(n)
      t.match((await ada.raw.reply(ada.send('last'))).payload, { status: 'ok' }, 'its reply does not wait for others')
      for (const { raw } of [ben, cyd]) {
        await until(() => payloads(raw).includes('last'), 'the last broadcast')
        t.same(payloads(raw), [...Array.from({ length: 200 }, (_, n) => n), 'last'])
      }
      t.match((await ben.raw.reply(ben.send('back'))).payload, { status: 'ok' })
      for (const { raw } of [ada, ben, cyd]) await until(() => payloads(raw).includes('back'), 'the way back')
      t.same(payloads(ada.raw), ['back'], 'a sender does not receive its own')
      t.equal(payloads(ben.raw).filter((payload) => payload === 'back').length, 1, 'unless it wants that')
      t.same(payloads(other.raw), [])
      for (const { raw } of [ada, ben, cyd, other]) raw.leave()
    },
  )

  t.test('Bytes and large messages arrive unchanged', async (t) => {
    const ada = await member(first)
    const ben = await member(second)
    const bytes = Buffer.from(Array.from({ length: 256_000 }, (_, at) => (at * 7) % 256))
    const [name, event] = [Buffer.from(topic), Buffer.from('b')]
    const head = Buffer.from([3, ada.ref.length, 1, name.length, event.length, 0, 0])
    ada.raw.sendBytes(Buffer.concat([head, Buffer.from(ada.ref), Buffer.from('9'), name, event, bytes]))
    await until(() => ben.raw.binary.length === 1, 'the bytes')
    t.ok(ben.raw.binary[0]?.subarray(-bytes.length).equals(bytes))
    const text = 'ö€😀'.repeat(28_000)
    ada.send(text)
    await until(() => payloads(ben.raw).length === 1, 'the text')
    t.equal(payloads(ben.raw)[0], text)
    const large = 'y'.repeat(2_900_000)
    ada.send(large)
    await until(() => payloads(ben.raw).length === 2, 'the largest message')
    t.equal(payloads(ben.raw)[1], large)
    for (const { raw } of [ada, ben]) raw.leave()
  })

  t.test('Broadcasts by HTTP reach all runtimes, also from one without clients', async (t) => {
    const ben = await member(second)
    const cyd = await member(third)
    const one = await first.request('POST', '/realtime/v1/api/broadcast/room/events/x', { body: { n: 1 } })
    const batch = await first.request('POST', '/realtime/v1/api/broadcast', {
      body: { messages: [2, 3].map((n) => ({ topic: 'room', event: 'x', payload: { n } })) },
    })
    t.same([one.status, batch.status], [202, 202])
    for (const { raw } of [ben, cyd]) {
      await until(() => payloads(raw).length === 3, 'three broadcasts')
      t.same(payloads(raw), [{ n: 1 }, { n: 2 }, { n: 3 }])
      raw.leave()
    }
  })

  t.test(
    'Presence joins, changes and leaves in all runtimes, and each client that joins receives all of it',
    async (t) => {
      const ada = await PresenceClient.join(first, topic, 'ada')
      const ben = await PresenceClient.join(second, topic, 'ben')
      await ada.track({ at: 1 })
      await ben.track({ at: 1 })
      for (const client of [ada, ben]) await until(() => client.keys().join() === 'ada,ben', 'both entries')
      t.equal(ada.state(), ben.state(), 'with the same references')
      await ada.track({ at: 2 })
      await until(() => ben.state().includes('"at":2'), 'the change')
      t.match(ben.state(), /phx_ref_prev/)
      const cyd = await PresenceClient.join(third, topic, 'cyd')
      const [first_] = cyd.raw.of('presence_state')
      t.same(Object.keys(first_?.payload ?? {}).sort(), ['ada', 'ben'], 'the first state is complete')
      t.equal(cyd.state(), ada.state())
      await ada.untrack()
      ben.raw.leave()
      await until(() => cyd.keys().length === 0, 'both have left')
      await until(() => ada.keys().length === 0, 'both have left')
      for (const { raw } of [ada, cyd]) raw.leave()
    },
  )

  t.test('The policies decide in each runtime, and what goes through the table arrives once', async (t) => {
    const client = new pg.Client({ connectionString: scene.home.adminUrl })
    await client.connect()
    t.teardown(() => client.end())
    await client.query(await readFile(new URL('../../examples/realtime/messages.sql', import.meta.url), 'utf8'))
    await client.query(`
      create policy receivers on realtime_messages for select using (current_setting('app.user_id', true) in ('ada', 'ben'));
      create policy senders on realtime_messages for insert with check (current_setting('app.user_id', true) = 'ada')`)
    const join = async (runtime: SiblingRuntime, user: string) => {
      const raw = await RawSocket.open(runtime)
      const config = { private: true, broadcast: { ack: true, self: true } }
      return { raw, ...(await raw.join(topic, config, { access_token: scene.token(user) })) }
    }
    const ada = await join(first, 'ada')
    const ben = await join(second, 'ben')
    const eve = await join(third, 'eve')
    t.match(
      [ada, ben, eve].map(({ reply }) => reply.payload['status']),
      ['ok', 'ok', 'error'],
    )
    const open = await member(third)
    ben.raw.send(topic, 'broadcast', { event: 'x', payload: 'not allowed' }, ben.ref)
    await ada.raw.call(topic, 'broadcast', { event: 'x', payload: 'direct' }, ada.ref)
    // The table is followed after the first join that finds it.
    await client.query(`select realtime_send('"sql"', 'x', 'room')`)
    for (const { raw } of [ada, ben]) {
      await until(() => payloads(raw).includes('sql'), 'the broadcast of SQL')
      t.same(payloads(raw), ['direct', 'sql'])
    }
    const stored = await first.request('POST', '/realtime/v1/api/broadcast/room/events/x?private=true&persist=true', {
      body: { stored: true },
    })
    t.equal(stored.status, 202)
    await ada.raw.call(topic, 'broadcast', { event: 'x', payload: 'after' }, ada.ref)
    for (const { raw } of [ada, ben]) {
      await until(() => payloads(raw).length >= 4, 'the stored message')
      t.equal(payloads(raw).filter((payload) => JSON.stringify(payload) === '{"stored":true}').length, 1)
      t.equal(payloads(raw).length, 4)
    }
    t.same(payloads(open.raw), [], 'the public topic of the same name is another one')
    for (const { raw } of [ada, ben, eve, open]) raw.leave()
  })

  t.test('Presence of a killed runtime leaves in the others, and a runtime that starts receives theirs', async (t) => {
    const ada = await PresenceClient.join(first, topic, 'ada')
    const ben = await PresenceClient.join(second, topic, 'ben')
    const cyd = await PresenceClient.join(third, topic, 'cyd')
    for (const client of [ada, ben, cyd]) await client.track({ here: true })
    for (const client of [ada, ben, cyd]) await until(() => client.keys().join() === 'ada,ben,cyd', 'all three entries')
    await third.end('SIGKILL')
    for (const client of [ada, ben]) await until(() => client.keys().join() === 'ada,ben', 'the end of the third')
    await scene.untilLinked([first, second], 1)
    t.match(first.log.join('\n'), /"The runtime at 127\.0\.0\.1:\d+ is lost/)
    await third.start()
    await scene.untilLinked(scene.runtimes, 2)
    const dan = await PresenceClient.join(third, topic, 'dan')
    t.same(dan.keys(), ['ada', 'ben'])
    await dan.track({})
    for (const client of [ada, ben]) await until(() => client.keys().join() === 'ada,ben,dan', 'the new entry')
    await second.end('SIGTERM')
    for (const client of [ada, dan]) await until(() => client.keys().join() === 'ada,dan', 'the end of the second')
    await second.start()
    await scene.untilLinked(scene.runtimes, 2)
    for (const { raw } of [ada, dan]) raw.leave()
  })
})

t.test('Two runtimes', async (t) => {
  const scene = await startSiblings(t, 2)
  const [first, second] = scene.runtimes as [SiblingRuntime, SiblingRuntime]

  t.test(
    'After an end of the link, presence is as in the other runtime, and what has not changed has not left',
    async (t) => {
      const ada = await PresenceClient.join(first, topic, 'ada')
      const old = await PresenceClient.join(first, topic, 'old')
      const ben = await PresenceClient.join(second, topic, 'ben')
      for (const client of [ada, old, ben]) await client.track({})
      await until(() => ben.keys().join() === 'ada,ben,old', 'all entries')
      scene.cutLinks()
      const [cyd] = await Promise.all([PresenceClient.join(first, topic, 'cyd'), old.untrack()])
      await cyd.track({})
      await until(() => ben.keys().join() === 'ada,ben,cyd', 'the state of the first runtime')
      await until(() => cyd.keys().join() === 'ada,ben,cyd', 'the state of the second runtime')
      t.same(ben.left(), ['old'])
      for (const { raw } of [ada, old, ben, cyd]) raw.leave()
    },
  )

  t.test(
    'Whatever two runtimes track and untrack, and however often their link ends, both have the same state',
    async () => {
      const step = fc.record({
        client: fc.nat(5),
        action: fc.constantFrom('track', 'track', 'untrack', 'leave', 'cut'),
        payload: fc.record({ n: fc.nat(2), constructor: fc.constant('c') }, { requiredKeys: ['n'] }),
      })
      let run = 0
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
          const name = `realtime:room-${++run}`
          const join = (client: number) =>
            PresenceClient.join(client % 2 === 0 ? first : second, name, `k${client % 3}`)
          const watchers = await Promise.all([join(0), join(1)])
          const clients = await Promise.all([0, 1, 2, 3, 4, 5].map(join))
          for (const { client: number, action, payload } of steps) {
            const client = clients[number]
            if (action === 'cut') scene.cutLinks()
            else if (action === 'leave') {
              client?.raw.leave()
              clients[number] = await join(number)
            } else if (action === 'untrack') await client?.untrack()
            else await client?.track(payload)
          }
          // The last entry of each runtime shows that everything before it has arrived.
          for (const [at, watcher] of watchers.entries()) await watcher.track({ last: at })
          const hasLast = (client: PresenceClient) => /"last":0/.test(client.state()) && /"last":1/.test(client.state())
          await until(
            () => {
              const states = new Set([...watchers, ...clients].map((client) => client.state()))
              return states.size === 1 && watchers.every(hasLast)
            },
            `the same state everywhere: ${watchers.map((client) => client.state()).join('\n---\n')}`,
          )
          for (const { raw } of [...watchers, ...clients]) raw.leave()
        }),
        { numRuns: effort({ small: 8, full: 200 }), seed },
      )
    },
  )

  t.test(
    'A runtime that does not read is given up: broadcasts are dropped, clients of the others lose nothing',
    async (t) => {
      const ada = await PresenceClient.join(first, topic, 'ada')
      // Clients of the other topic would be disconnected as slow readers by what has waited.
      const ann = await member(first, {}, 'realtime:bulk')
      const ben = await PresenceClient.join(second, topic, 'ben')
      await ben.track({})
      await until(() => ada.keys().join() === 'ben', 'the entry')
      second.freeze()
      const large = 'y'.repeat(1_000_000)
      for (let n = 0; n < 40; n++) {
        const { status } = await first.request('POST', '/realtime/v1/api/broadcast/bulk/events/x', {
          body: { n, large },
        })
        t.equal(status, 202)
        await until(() => payloads(ann.raw).length === n + 1, 'the delivery here')
      }
      t.ok((await first.metric('tenantry_runtime_realtime_dropped_total{reason="link_full"}')) > 0)
      await until(() => ada.keys().length === 0, 'the entry has left')
      second.thaw()
      await scene.untilLinked(scene.runtimes, 1)
      await until(() => ada.keys().join() === 'ben', 'the entry is back')
      for (const raw of [ada.raw, ann.raw, ben.raw]) raw.leave()
    },
  )

  t.test('Only the other runtimes may follow, and a frame that is none ends the link alone', async (t) => {
    const open = async (headers: Record<string, string>, frame: string | Buffer | undefined) => {
      const socket = new WebSocket(`ws://127.0.0.1:${first.port}${internalPaths.realtimeRelay}`, { headers })
      let status = 101
      socket.on('unexpected-response', (_request, response) => {
        status = response.statusCode ?? 0
        socket.terminate()
      })
      socket.on('error', () => undefined)
      if (frame !== undefined) socket.on('open', () => socket.send(frame))
      await until(() => socket.readyState === WebSocket.CLOSED, 'the end of the link')
      return status
    }
    const token = { [internalTokenHeader]: internalToken }
    t.equal(await open({}, undefined), 403)
    t.equal(await open({ [internalTokenHeader]: 'x'.repeat(48) }, undefined), 403)
    for (const frame of ['{', '[]', '{"kind":"follow"}', Buffer.from([0, 0, 0, 9, 1]), 'x'.repeat(5_000)])
      t.equal(await open(token, frame), 101)
    const plain = await first.request('GET', internalPaths.realtimeRelay)
    t.match([plain.status, plain.json()], [400, { code: 'BAD_REQUEST' }])
    await scene.untilLinked(scene.runtimes, 1)
  })

  t.test('Without the database, broadcasts and presence go on', async () => {
    const ada = await PresenceClient.join(first, topic, 'ada')
    const ben = await PresenceClient.join(second, topic, 'ben')
    await scene.postgres.stop()
    await ada.track({})
    await until(() => ben.keys().join() === 'ada', 'presence')
    for (const runtime of scene.runtimes) {
      const from = runtime === first ? ada : ben
      await from.raw.call(topic, 'broadcast', { event: 'x', payload: 'still' })
    }
    for (const { raw } of [ada, ben]) await until(() => payloads(raw).join() === 'still', 'the broadcast of the other')
    for (const { raw } of [ada, ben]) raw.leave()
  })
})
