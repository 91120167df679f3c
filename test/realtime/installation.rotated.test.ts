// Channels through the gateway of a whole installation: they are metered and compressed, and come back after the runtime was killed.
import { createClient, type RealtimeChannel } from '@supabase/supabase-js'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import t from 'tap'
import { WebSocket } from 'ws'
import { controlCall } from '#test/support/control-call.ts'
import { removeInstallation, startInstallation, type Installation } from '#test/support/installation.ts'
import { until } from '#test/support/until.ts'
import { bytesOf, RawSocket } from './support/raw-socket.ts'

interface Created {
  tenant_id: string
  keys: { secret_key: string; publishable_key: string }
}

let installation: Installation

/** Returns the response to a request for a WebSocket that is rejected. */
async function rejection(tenant: string, key: string): Promise<{ status: number | undefined; error: unknown }> {
  const url = `${installation.gatewayUrl.replace('http', 'ws')}/t/${tenant}/realtime/v1/websocket?vsn=2.0.0&apikey=${key}`
  const socket = new WebSocket(url)
  const [, response] = (await once(socket, 'unexpected-response')) as [unknown, IncomingMessage]
  let text = ''
  for await (const chunk of response) text += String(chunk)
  return { status: response.statusCode, error: (JSON.parse(text) as { error: unknown }).error }
}

/** Subscribes, and records every status. */
function follow(channel: RealtimeChannel): string[] {
  const statuses: string[] = []
  channel.subscribe((status) => statuses.push(status))
  return statuses
}

t.test('Channels of an installation', { timeout: 240_000 }, async (t) => {
  installation = await startInstallation({ runtimes: 1, environment: { TENANTRY_REALTIME_COMPRESSION: '1' } })
  t.teardown(() => removeInstallation(installation))
  const created = await controlCall<Created>(installation, 'POST', '/v1/tenants', {
    name: 'live',
    plan: 'Pro',
    region: 'local',
  })
  const url = `${installation.gatewayUrl}/t/live`
  const auth = { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false }
  const clients = [1, 2].map(() => createClient(url, created.keys.publishable_key, { auth }))
  t.teardown(() => Promise.all(clients.map((client) => client.realtime.disconnect())))
  const service = createClient(url, created.keys.secret_key, { auth })
  const send = async (method: string, path: string, body: object) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${created.keys.secret_key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  }
  await send('POST', '/rest/v1/schemas', {
    name: 'notes',
    fields: [
      { name: 'id', type: 'uuid', primary: true },
      { name: 'owner_id', type: 'string' },
      { name: 'n', type: 'number' },
    ],
    rls_policy: { type: 'public_read', owner_field: 'owner_id' },
    events: true,
  })
  await send('POST', '/admin/reload-schemas', {})

  const received: unknown[] = []
  const statuses = clients.map((client) =>
    follow(
      client
        .channel('room')
        .on('broadcast', { event: '*' }, (message) => received.push(message['event']))
        .on('postgres_changes', { event: 'INSERT', schema: 'public', table: 'notes' }, (change) =>
          received.push((change.new as { n: number }).n),
        ),
    ),
  )
  const untilSubscribed = () =>
    until(() => statuses.every((list) => list.at(-1) === 'SUBSCRIBED'), JSON.stringify(statuses))

  await t.test('Messages and changes reach clients through the gateway', async (t) => {
    await untilSubscribed()
    await service.channel('room').httpSend('hello', {})
    await service.from('notes').insert({ n: 1 })
    await until(() => received.length === 4)
    t.same([...received].sort(), [1, 1, 'hello', 'hello'])
  })

  await t.test('The connections count as realtime connections, with their bytes', async (t) => {
    interface Usage {
      realtime_connections: { peak: number; limit: number }
      egress: { bytes: number }
    }
    let usage: Usage | undefined
    await until(async () => {
      usage = (await controlCall<{ resources: Usage }>(installation, 'GET', `/v1/tenants/${created.tenant_id}/usage`))
        .resources
      return usage.realtime_connections.peak === 2 && usage.egress.bytes > 0
    }, 'the usage of the connections')
    t.match(usage, { realtime_connections: { peak: 2, limit: 10_000 } })
  })

  await t.test(
    'After a kill of the runtime, clients join again and receive everything that is sent then',
    async (t) => {
      received.length = 0
      for (const list of statuses) list.length = 0
      process.kill(await installation.pid('runtime-0'), 'SIGKILL')
      await until(() => statuses.every((list) => list.length > 0), 'clients that notice the end')
      await untilSubscribed()
      await service.channel('room').httpSend('again', {})
      await service.from('notes').insert({ n: 2 })
      await until(() => received.length === 4)
      t.same([...received].sort(), [2, 2, 'again', 'again'])
    },
  )

  await t.test('Compressed messages pass through the gateway as they are', async (t) => {
    const raw = await RawSocket.open({ url, publishableKey: created.keys.publishable_key })
    t.equal(raw.socket.extensions, 'permessage-deflate')
    const { ref } = await raw.join('realtime:long', { broadcast: { self: true } })
    const payload = { text: 'the lamp is lit, '.repeat(2_000) }
    raw.send('realtime:long', 'broadcast', { event: 'x', payload }, ref)
    const frame = await raw.until(({ event }) => event === 'broadcast', 'the message')
    t.same(frame.payload['payload'], payload)
    const bytes = bytesOf(raw.socket)
    t.ok(bytes < 10_000, String(bytes))
    raw.leave()
  })

  await t.test('Kills of the runtime lose no count of a message, and count none twice', async (t) => {
    const messages = async () => {
      interface Usage {
        realtime_messages: { count: number }
      }
      const { resources } = await controlCall<{ resources: Usage }>(
        installation,
        'GET',
        `/v1/tenants/${created.tenant_id}/usage`,
      )
      return resources.realtime_messages.count
    }
    const tenant = { url, publishableKey: created.keys.publishable_key }
    const before = await messages()
    t.ok(before > 0, 'the messages of the tests above')
    const sums = { sent: 0, known: 0 }
    for (let kill = 0; kill < 3; kill++) {
      const [sender, receiver] = [await RawSocket.open(tenant), await RawSocket.open(tenant)]
      await receiver.join('realtime:kills')
      const { ref } = await sender.join('realtime:kills', { broadcast: { ack: true } })
      const pid = await installation.pid('runtime-0')
      const some = new Promise<void>((resolve) =>
        receiver.socket.on('message', () => {
          if (receiver.of('broadcast').length > 20 * kill) resolve()
        }),
      )
      for (let n = 0; n < 200; n++) sender.send('realtime:kills', 'broadcast', { event: 'x', payload: n }, ref)
      await some
      process.kill(pid, 'SIGKILL')
      await Promise.all([sender.untilClosed(), receiver.untilClosed()])
      sums.sent += 200
      sums.known += sender.of('phx_reply').length - 1 + receiver.of('broadcast').length
      await until(async () => (await fetch(`${url}/rest/v1/notes`, { headers: { apikey: tenant.publishableKey } })).ok)
    }
    // A message that was in progress may count although its acknowledgement or its delivery was lost.
    const total = (await messages()) - before
    t.ok(sums.known <= total && total <= 2 * sums.sent, JSON.stringify({ ...sums, total }))
    t.comment(JSON.stringify({ ...sums, total }))
    await untilSubscribed()
  })

  await t.test('A connection of an unknown tenant or with another key is rejected before it begins', async (t) => {
    t.match(await rejection('nothing', created.keys.publishable_key), { status: 404, error: String })
    t.match(await rejection('live', 'tn_publishable_other'), { status: 401, error: String })
  })
})
