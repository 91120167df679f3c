// Unmodified clients of two versions use channels, with both versions of the protocol.
import { createClient as createNewer, type RealtimeChannel, type SupabaseClient } from '@supabase/supabase-js'
import { createClient as createOlder } from 'supabase-js-2-109'
import t from 'tap'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { createNotes, insertNote } from './support/notes.ts'

/** `updatesPresence`: version 2.109 of the client changes entries of presence in place, and then finds no leaves of them. */
const clients = [
  { name: 'supabase-js 2.119, version 2.0.0', create: createNewer, vsn: '2.0.0', updatesPresence: true },
  { name: 'supabase-js 2.119, version 1.0.0', create: createNewer, vsn: '1.0.0', updatesPresence: true },
  {
    name: 'supabase-js 2.109, version 2.0.0',
    create: createOlder as unknown as typeof createNewer,
    vsn: '2.0.0',
    updatesPresence: false,
  },
] as const

function clientOf(tenant: TestTenant, { create, vsn }: (typeof clients)[number], key = tenant.publishableKey) {
  return create(tenant.url, key, {
    auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false },
    realtime: { vsn },
  }) as SupabaseClient
}

/** Subscribes, and resolves to the first status with its error. */
function subscribed(channel: RealtimeChannel): Promise<{ status: string; error: string | undefined }> {
  return new Promise((resolve) => {
    channel.subscribe((status, error) => resolve({ status, error: error?.message }))
  })
}

t.test('Clients', async (t) => {
  const runtime = await startRuntime(t)

  for (const client of clients)
    t.test(client.name, async (t) => {
      const tenant = await runtime.addTenant()
      await createNotes(tenant, { policy: 'ownership' })
      const [one, two] = [clientOf(tenant, client), clientOf(tenant, client)]
      t.teardown(async () => {
        await one.realtime.disconnect()
        await two.realtime.disconnect()
      })

      t.test('A broadcast reaches other subscribers, and the sender only with "self"', async (t) => {
        const received: Record<string, unknown[]> = { one: [], two: [], self: [] }
        const channels = {
          one: one.channel('room'),
          two: two.channel('room', { config: { broadcast: { ack: true } } }),
          self: two.channel('mirror', { config: { broadcast: { self: true } } }),
        }
        for (const [name, channel] of Object.entries(channels)) {
          channel.on('broadcast', { event: 'move' }, (message) => received[name]?.push(message['payload']))
          t.same(await subscribed(channel), { status: 'SUBSCRIBED', error: undefined })
        }
        t.equal(await channels.two.send({ type: 'broadcast', event: 'move', payload: { x: 1, name: 'Zoë' } }), 'ok')
        await channels.two.send({ type: 'broadcast', event: 'other', payload: {} })
        await channels.self.send({ type: 'broadcast', event: 'move', payload: { x: 2 } })
        await until(() => received['one']?.length === 1 && received['self']?.length === 1)
        t.same(received, { one: [{ x: 1, name: 'Zoë' }], two: [], self: [{ x: 2 }] })
        for (const channel of Object.values(channels)) t.equal(await channel.unsubscribe(), 'ok')
      })

      t.test('Broadcasts by HTTP reach subscribers, one or in a batch', async (t) => {
        const received: unknown[] = []
        const channel = one.channel('by http')
        channel.on('broadcast', { event: '*' }, (message) => received.push([message['event'], message['payload']]))
        await subscribed(channel)
        const sender = two.channel('by http')
        t.same(await sender.httpSend('one', { n: 1 }), { success: true })
        // A channel that has not joined sends a batch.
        t.equal(await sender.send({ type: 'broadcast', event: 'two', payload: { n: 2 } }), 'ok')
        await until(() => received.length === 2)
        t.same(received, [
          ['one', { n: 1 }],
          ['two', { n: 2 }],
        ])
        await one.removeChannel(channel)
        await two.removeChannel(sender)
      })

      t.test('Presence shows who is there, what they track, and that they have left', async (t) => {
        const channel = one.channel('office', { config: { presence: { key: 'one' } } })
        const other = two.channel('office', { config: { presence: { key: 'two' } } })
        const joined: unknown[] = []
        const left: unknown[] = []
        channel
          .on('presence', { event: 'sync' }, () => undefined)
          .on('presence', { event: 'join' }, ({ key, newPresences }) => joined.push([key, newPresences.length]))
          .on('presence', { event: 'leave' }, ({ key }) => left.push(key))
        await subscribed(channel)
        await subscribed(other)
        t.equal(await channel.track({ status: 'here' }), 'ok')
        t.equal(await other.track({ status: 'here' }), 'ok')
        const shown = () =>
          Object.entries(channel.presenceState<{ status: string }>()).map(([key, metas]) => [
            key,
            metas.map((m) => m.status),
          ])
        await until(() => shown().length === 2)
        t.same(shown(), [
          ['one', ['here']],
          ['two', ['here']],
        ])
        if (client.updatesPresence) {
          await other.track({ status: 'away' })
          await until(() => JSON.stringify(shown()).includes('away'))
        }
        await other.untrack()
        await until(() => shown().length === 1)
        t.ok(joined.some((entry) => JSON.stringify(entry) === '["two",1]'))
        t.ok(left.includes('two'))
        await one.removeChannel(channel)
        await two.removeChannel(other)
      })

      t.test('Changes reach a signed-in user, with the values that the client converts', async (t) => {
        await one.realtime.setAuth(tenant.token('ada'))
        const received: { eventType: string; new: unknown; old: unknown }[] = []
        const channel = one.channel('changes')
        channel.on('postgres_changes', { event: '*', schema: 'public', table: 'notes' }, (change) =>
          received.push(change),
        )
        t.same(await subscribed(channel), { status: 'SUBSCRIBED', error: undefined })
        await insertNote(tenant, 'ben', { text: 'not hers' })
        const id = await insertNote(tenant, 'ada', { text: 'hers', n: 7 })
        await tenant.request('DELETE', `/rest/v1/notes/${id}`, { as: 'ada' })
        await until(() => received.length === 2)
        t.match(received, [
          { eventType: 'INSERT', new: { id, text: 'hers', n: 7 }, old: {} },
          { eventType: 'DELETE', new: {}, old: { id } },
        ])
        await one.removeChannel(channel)
      })

      t.test('A subscription that is not possible shows its reason', async (t) => {
        const channel = one.channel('wrong')
        channel.on('postgres_changes', { event: '*', schema: 'public', table: 'nothing' }, () => undefined)
        const { status, error } = await subscribed(channel)
        t.equal(status, 'CHANNEL_ERROR')
        t.match(error, /Changes of the table "nothing" are not events/)
        await one.removeChannel(channel)
      })

      t.test('A key that is not the tenant’s cannot connect', async (t) => {
        const rejected = clientOf(tenant, client, 'tn_publishable_unknown')
        const { status } = await subscribed(rejected.channel('room'))
        t.equal(status, 'CHANNEL_ERROR')
        await rejected.realtime.disconnect()
        await rejected.removeAllChannels()
      })
    })

  t.test('Bytes reach clients of version 2.0.0 unchanged', async (t) => {
    const tenant = await runtime.addTenant()
    const [sender, reader] = [clientOf(tenant, clients[0]), clientOf(tenant, clients[0])]
    const received: ArrayBuffer[] = []
    const channel = reader.channel('bytes')
    channel.on('broadcast', { event: 'image' }, (message) => received.push(message['payload'] as ArrayBuffer))
    await subscribed(channel)
    const sending = sender.channel('bytes')
    await subscribed(sending)
    const bytes = Uint8Array.from({ length: 1_000 }, (_, n) => n % 256)
    await sending.send({ type: 'broadcast', event: 'image', payload: bytes.buffer })
    await sending.httpSend('image', bytes)
    await until(() => received.length === 2)
    for (const buffer of received) t.ok(Buffer.from(buffer).equals(bytes))
    await sender.realtime.disconnect()
    await reader.realtime.disconnect()
  })
})
