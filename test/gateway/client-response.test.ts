// The client's side of a response by itself: whether its connection may serve another request, and the wait for a reader.
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import t from 'tap'
import { ClientResponse } from '#gateway/forward/client-response.ts'
import { PassedBytes } from '#gateway/forward/passed-bytes.ts'
import { defaultLimits } from '#gateway/limits.ts'
import { until } from '#test/support/until.ts'

/** How long a client may take nothing in these tests, in milliseconds. */
const readerIdleTimeout = 50

function startClient() {
  const request = new IncomingMessage(new Socket())
  const response = new ServerResponse(request)
  const reported: string[] = []
  const gateway = { isClosing: false }
  const client = new ClientResponse({
    request,
    response,
    requestId: 'id',
    hasBody: true,
    passed: new PassedBytes(() => undefined),
    limits: { ...defaultLimits, readerIdleTimeout },
    isClosing: () => gateway.isClosing,
  })
  const reader = { readerReady: () => void reported.push('ready'), readerIdle: () => void reported.push('idle') }
  return { request, response, client, reader, told: reported, gateway }
}

/** Resolves when a client has had three times the time that it has. */
async function timePassed(): Promise<void> {
  const begun = performance.now()
  await until(() => performance.now() - begun > 3 * readerIdleTimeout)
}

t.test(
  'a connection may serve another request, but for a body that was not asked for and a broken request',
  async (t) => {
    const { client } = startClient()
    t.notOk(client.isLast)
    client.awaitContinue()
    t.ok(client.isLast, 'the next bytes may be a body or a request')
    client.sendContinue()
    t.notOk(client.isLast, 'they are the body')
    client.awaitContinue()
    client.neverReuse()
    client.sendContinue()
    t.ok(client.isLast, 'what is broken stays so')
    client.awaitContinue()
    client.sendContinue()
    t.ok(client.isLast)
  },
)

t.test('connections of a gateway that stops serve no other request', async (t) => {
  const { client, gateway } = startClient()
  gateway.isClosing = true
  t.ok(client.isLast)
})

t.test('what is left of a request is read on only where the connection serves another one', async (t) => {
  const reused = startClient()
  reused.client.end(undefined, true)
  t.equal(reused.request.listenerCount('data'), 1)
  reused.request.socket.destroy()
  for (const close of ['awaitContinue', 'neverReuse'] as const) {
    const closed = startClient()
    closed.client[close]()
    closed.client.end(undefined, true)
    t.equal(closed.request.listenerCount('data'), 0, close)
  }
  const whole = startClient()
  whole.request.complete = true
  whole.client.end(undefined, true)
  t.equal(whole.request.listenerCount('data'), 0, 'nothing is left')
})

t.test('a client that takes nothing is idle after its time, once', async (t) => {
  const { client, reader, told: reported } = startClient()
  client.awaitReader(reader)
  await until(() => reported.length > 0)
  await timePassed()
  t.same(reported, ['idle'])
})

t.test('a client that takes more is ready, and its time stands still until the next wait', async (t) => {
  const { client, response, reader, told: reported } = startClient()
  for (let n = 0; n < 3; n++) {
    client.awaitReader(reader)
    client.awaitReader(reader)
    response.emit('drain')
  }
  await timePassed()
  t.same(reported, ['ready', 'ready', 'ready'], 'told once each, and no wait is left behind')
  t.equal(response.listenerCount('drain'), 1)
  client.awaitReader(reader)
  await until(() => reported.length > 3)
  t.equal(reported[3], 'idle')
})

t.test('a response that is released waits for no reader, and its body is destroyed', async (t) => {
  const { client, reader, told: reported } = startClient()
  const body = client.openBody(() => reported.push('stopped'))
  client.awaitReader(reader)
  client.release()
  await timePassed()
  t.same(reported, [])
  t.ok(body.destroyed)
})
