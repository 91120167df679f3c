// Which messages count for a tenant's usage, in the counters that the control plane reads.
import { HomeCounters } from '@tenantry/contract'
import t from 'tap'
import { Value } from 'typebox/value'
import { freshCountersSql } from '#control-plane/backups/rehome-sql.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { runSql } from './support/follow-changes.ts'
import { createNotes } from './support/notes.ts'
import { RawSocket } from './support/raw-socket.ts'

const topic = 'realtime:room'

async function messagesOf(tenant: TestTenant): Promise<number> {
  const response = await tenant.request('GET', `/internal/v1/tenants/${tenant.id}/books?hours=2`)
  if (response.status !== 200) throw new Error(response.text)
  const { hours } = Value.Parse(HomeCounters, response.json())
  return hours.reduce((sum, { realtime_messages: messages }) => sum + Number(messages), 0)
}

t.test('Metering of messages', async (t) => {
  const runtime = await startRuntime(t)

  t.test('Messages count when clients send and receive them, and nothing else counts', async (t) => {
    const tenant = await runtime.addTenant({ limits: { realtime_payload_bytes: 20_000 } })
    await createNotes(tenant)
    const [one, two] = [await RawSocket.open(tenant), await RawSocket.open(tenant, { version: '1.0.0' })]
    const { ref } = await one.join(topic, { broadcast: { ack: true } })
    await two.join(topic)
    await one.call('phoenix', 'heartbeat', {})
    await one.call(topic, 'dance', {}, ref)
    await one.call(topic, 'broadcast', { event: 'x', payload: 'y'.repeat(20_000) }, ref)
    t.equal(await messagesOf(tenant), 0, 'joins, heartbeats, replies and rejected messages do not count')
    await one.call(topic, 'broadcast', { event: 'x', payload: {} }, ref)
    await until(() => two.of('broadcast').length === 1)
    t.equal(await messagesOf(tenant), 2, 'a broadcast to one other client')
    const bytes = Buffer.concat([
      Buffer.from([3, ref.length, 1, topic.length, 1, 0, 0]),
      Buffer.from(`${ref}7${topic}x!`),
    ])
    one.sendBytes(bytes)
    await one.reply('7')
    t.equal(await messagesOf(tenant), 3, 'bytes, which version 1.0.0 cannot receive')
    const { status } = await tenant.request('POST', '/realtime/v1/api/broadcast', {
      as: 'service',
      body: { messages: [1, 2].map((n) => ({ topic: 'room', event: 'x', payload: n })) },
    })
    t.equal(status, 202)
    await until(() => one.of('broadcast').length === 2 && two.of('broadcast').length === 3)
    t.equal(await messagesOf(tenant), 9, 'a batch of two by HTTP to two clients')
    const three = await RawSocket.open(tenant)
    await three.join(topic, { presence: { enabled: true } })
    await three.until(({ event }) => event === 'presence_state', 'the presence')
    t.equal(await messagesOf(tenant), 10, 'the presence at a join')
    await one.call(topic, 'presence', { event: 'track', payload: {} }, ref)
    await three.until(({ event }) => event === 'presence_diff', 'the difference')
    t.equal(await messagesOf(tenant), 12, 'an entry of presence to one client')
    await three.join('realtime:notes', { postgres_changes: [{ event: '*', schema: 'public', table: 'notes' }] })
    await runSql(tenant, 'insert into notes (n) values (1)')
    await three.until(({ event }) => event === 'postgres_changes', 'the change')
    t.equal(await messagesOf(tenant), 13, 'a change to one client')
    t.equal(await messagesOf(tenant), 13, 'reading changes nothing')
    for (const raw of [one, two, three]) raw.leave()
  })

  t.test('After a restore, new counters have only what was not reported', async (t) => {
    const tenant = await runtime.addTenant()
    const raw = await RawSocket.open(tenant)
    const { ref } = await raw.join(topic, { broadcast: { ack: true } })
    const send = () => raw.call(topic, 'broadcast', { event: 'x', payload: {} }, ref)
    await send()
    t.equal(await messagesOf(tenant), 1)
    await send()
    await tenant.rows(freshCountersSql(tenant.id))
    t.equal(await messagesOf(tenant), 1)
    await send()
    t.equal(await messagesOf(tenant), 2)
    raw.leave()
  })

  t.test('Nothing of all this was logged as an error', async (t) => t.same(runtime.errors, []))
})
