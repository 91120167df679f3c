// The rates of a tenant's clients.
import { once } from 'node:events'
import t from 'tap'
import { startRuntime } from '#test/support/runtime.ts'
import { RawSocket } from './support/raw-socket.ts'

const topic = 'realtime:room'

t.test('Rates', async (t) => {
  const runtime = await startRuntime(t)

  t.test('Presence above its rate ends the channel with its own error', async (t) => {
    const tenant = await runtime.addTenant({ limits: { realtime_messages: 10 } })
    const raw = await RawSocket.open(tenant)
    const { ref } = await raw.join(topic)
    for (let n = 0; n < 5; n++) raw.send(topic, 'presence', { event: 'track', payload: { n } }, ref)
    await raw.until(({ event }) => event === 'phx_error', 'the end of the channel')
    t.match(raw.of('system').at(-1)?.payload, {
      status: 'error',
      message: 'PresenceRateLimitReached: The plan allows 2 presence messages per second.',
    })
    t.match((await raw.join(topic)).reply.payload, { status: 'ok' })
    raw.leave()
  })

  t.test('A client that connects again has no new burst, and neither have broadcasts by HTTP', async (t) => {
    const tenant = await runtime.addTenant({ limits: { realtime_messages: 20 } })
    const send = async () => {
      const messages = Array.from({ length: 20 }, (_, n) => ({ topic: 'room', event: 'x', payload: n }))
      const response = await tenant.request('POST', '/realtime/v1/api/broadcast', { as: 'service', body: { messages } })
      return response.status
    }
    const statuses = []
    const before = performance.now()
    for (let n = 0; n < 20; n++) {
      const raw = await RawSocket.open(tenant)
      statuses.push(await send())
      raw.leave()
      await once(raw.socket, 'close')
    }
    const seconds = (performance.now() - before) / 1_000
    const sent = statuses.filter((status) => status === 202).length
    t.ok(sent >= 1 && sent <= 1 + seconds, `${sent} batches in ${seconds.toFixed(2)} s`)
  })

  t.test('Nothing of all this was logged as an error', async (t) => t.same(runtime.errors, []))
})
