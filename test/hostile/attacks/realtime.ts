// Realtime channels: floods of messages and frames, clients that do not read, and joins that cost much.
import { readFile } from 'node:fs/promises'
import { effort } from '#test/support/effort.ts'
import type { Attack } from '../attack.ts'
import { openChannels, repeatOn } from '../support/channels.ts'
import { openRaw, watchConnections } from '../support/requests.ts'
import { openSql, trySql } from '../support/sql.ts'
import { addNotes, callTenant } from '../support/tenants.ts'

const sockets = effort({ small: 40, full: 100 })
const topic = 'realtime:room'
const broadcast = (length: number) => ({ type: 'broadcast', event: 'x', payload: { text: 'x'.repeat(length) } })

/** A head of a request for a WebSocket, without its end. */
const upgradeHead = (path: string, key: string) =>
  `GET ${path}/realtime/v1/websocket?apikey=${key}&vsn=2.0.0 HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\n` +
  'upgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n'

const attacks: Attack[] = [
  {
    name: 'WebSockets that join 100 channels each',
    attacker: 'service key',
    bound: 'joins and frames of the tenant per second; channels of a connection',
    sees: /ClientJoinRateLimitReached|TooManyFrames/,
    async run(scene) {
      const all = await openChannels(scene, scene.attacker, sockets)
      return repeatOn(scene, all, (socket, n) => {
        for (let channel = 0; channel < 10; channel++) socket.join(`realtime:${(n * 10 + channel) % 101}`)
      })
    },
  },
  {
    name: 'broadcasts at ten times the limit',
    attacker: 'service key',
    bound: 'messages of a connection and of the tenant per second; frames per second',
    sees: /MessagePerSecondRateLimitReached|TooManyFrames/,
    async run(scene) {
      const all = await openChannels(scene, scene.attacker, 10)
      for (const socket of all) socket.join(topic)
      return repeatOn(scene, all, (socket) => {
        for (let n = 0; n < 10; n++) socket.send(topic, 'broadcast', broadcast(1_000))
        socket.join(topic)
      })
    },
  },
  {
    name: 'large broadcasts to WebSockets that read nothing',
    attacker: 'service key',
    bound: 'bytes that wait for a connection; messages of the tenant',
    sees: /SlowReader/,
    async run(scene) {
      const [sender, ...readers] = await openChannels(scene, scene.attacker, sockets)
      for (const socket of readers) {
        socket.join(topic)
        socket.socket.pause()
      }
      sender?.join(topic)
      // The end of a connection is only seen after what was sent before it.
      const resume = setTimeout(() => {
        for (const { socket } of readers) socket.resume()
      }, scene.milliseconds * 3)
      scene.onEnd(() => clearTimeout(resume))
      const seen = repeatOn(scene, readers, (_, n) => {
        if (n % readers.length < 4) sender?.send(topic, 'broadcast', broadcast(200_000))
      })
      return seen
    },
  },
  {
    name: 'a storm of presence with large entries',
    attacker: 'service key',
    bound: 'messages of presence of the tenant per second; bytes of an entry and of a topic',
    sees: /Presence(RateLimitReached|Full)|TooManyFrames/,
    async run(scene) {
      const all = await openChannels(scene, scene.attacker, sockets)
      const config = { presence: { enabled: true } }
      for (const socket of all) socket.join(topic, config)
      return repeatOn(scene, all, (socket, n) => {
        socket.send(topic, 'presence', { type: 'presence', event: 'track', payload: { n, text: 'x'.repeat(16_000) } })
        if (n % 5 === 0) socket.join(topic, config)
      })
    },
  },
  {
    name: 'subscriptions to changes with patterns that backtrack',
    attacker: 'service key',
    bound: 'time of a batch of patterns, and of a pattern alone',
    sees: /ChangesEnded/,
    async run(scene) {
      const { attacker } = scene
      await addNotes(attacker)
      const all = await openChannels(scene, attacker, effort({ small: 5, full: 50 }))
      const pattern = `${'%a%b'.repeat(40)}x`
      const changes = (filter: string) => ({
        postgres_changes: [{ event: '*', schema: 'public', table: 'notes', filter }],
      })
      for (const [n, socket] of all.entries()) {
        socket.join('realtime:like', changes(`text=like.${n}${pattern}`))
        socket.join('realtime:match', changes(`text=match.^(a+)(a+)(a+)(a+)(a+)\\1\\2\\3\\4\\5(x${n})?$`))
      }
      const record = JSON.stringify({ text: 'a'.repeat(2_001) })
      return repeatOn(scene, all, (_, n) => {
        if (n % all.length > 0) return
        callTenant(attacker, 'POST', '/rest/v1/notes', record).catch(() => undefined)
        for (const socket of all) socket.join('realtime:like', changes(`text=like.${n}${pattern}`))
      })
    },
  },
  {
    name: 'frames of 100 MB',
    attacker: 'service key',
    bound: "the bytes of a frame: four times the plan's message",
    sees: /1009|1006/,
    async run(scene) {
      const all = await openChannels(scene, scene.attacker, sockets)
      const part = Buffer.alloc(1_000_000)
      for (const { stream } of all) {
        const head = Buffer.alloc(14)
        head.writeUInt16BE(0x82ff)
        head.writeBigUInt64BE(100_000_000n, 2)
        stream.write(head)
      }
      return repeatOn(scene, all, ({ isOpen, stream }) => {
        if (isOpen && stream.writableLength < 10 * part.length) stream.write(part)
      })
    },
  },
  {
    name: 'floods of pings',
    attacker: 'service key',
    bound: 'frames of a connection and of the tenant per second',
    sees: /TooManyFrames/,
    async run(scene) {
      const all = await openChannels(scene, scene.attacker, sockets)
      return repeatOn(scene, all, ({ isOpen, socket }) => {
        for (let n = 0; isOpen && n < 100; n++) socket.ping('x'.repeat(125))
      })
    },
  },
  {
    name: 'requests for WebSockets that stop half-way',
    attacker: 'service key',
    bound: 'long-lived connections of the plan; 15 s for a head',
    sees: /429 QUOTA_CONNECTIONS/,
    run(scene) {
      const { port, pathname } = new URL(scene.attacker.url)
      const head = upgradeHead(pathname.replace(/\/$/, ''), scene.attacker.secretKey)
      const connections = Array.from({ length: effort({ small: 240, full: 1_000 }) }, (_, n) =>
        openRaw({ ...scene, address: scene.addressOf(n) }, Number(port), n % 2 === 0 ? head : `${head}\r\n`),
      )
      return watchConnections(scene, connections)
    },
  },
  {
    name: 'joins with filters of 16 kB',
    attacker: 'service key',
    bound: 'characters, conditions and patterns of the subscriptions of a channel; joins of the tenant per second',
    sees: /InvalidJoinPayload|UnableToSubscribeToChanges|ClientJoinRateLimitReached/,
    async run(scene) {
      await addNotes(scene.attacker)
      const all = await openChannels(scene, scene.attacker, sockets)
      const conditions = Array.from({ length: 32 }, (_, n) => `text=neq.${n}${'x'.repeat(90)}`).join(',')
      const wanted = (n: number) => ({ event: '*', schema: 'public', table: 'notes', filter: `${conditions}${n}` })
      return repeatOn(scene, all, (socket, n) =>
        socket.join(`realtime:${n % 100}`, { postgres_changes: [1, 2, 3, 4].map((m) => wanted(4 * n + m)) }),
      )
    },
  },
  {
    name: 'replays of stored messages without end',
    attacker: 'service key',
    bound: 'joins of the tenant per second; 2 MiB of a replay; bytes that wait for a connection',
    sees: /ClientJoinRateLimitReached|SlowReader|TooManyFrames|DatabaseUnavailable/,
    async run(scene) {
      const client = await openSql(scene, scene.attacker.databaseUrl)
      await client.query(await readFile(new URL('../../../examples/realtime/messages.sql', import.meta.url), 'utf8'))
      const fill = `select realtime_send(to_jsonb(repeat('x', 80000)), 'x', 'room') from generate_series(1, 25)`
      const outcome = await trySql(client, fill)
      if (outcome !== 'ok') throw new Error(outcome)
      const all = await openChannels(scene, scene.attacker, sockets)
      return repeatOn(scene, all, (socket) => {
        for (let n = 0; n < 5; n++)
          socket.join(topic, { private: true, broadcast: { replay: { since: 0, limit: 25 } } })
      })
    },
  },
]

/** The attackers have many addresses, which clients of a Docker region cannot have. */
export const realtimeAttacks: Attack[] = attacks.map((attack) => ({ ...attack, targets: ['npm start'] }))
