// The client's side of a response: whether its connection may serve another request, and the wait for a reader.
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import t from 'tap'
import { ByteTurns } from '@tenantry/contract'
import { BodyBudget } from '#gateway/forward/body-budget.ts'
import { ClientResponse } from '#gateway/forward/client-response.ts'
import { PassedBytes } from '#gateway/forward/passed-bytes.ts'
import { defaultLimits } from '#gateway/limits.ts'
import { until } from '#test/support/until.ts'

/** The time after which a client that reads nothing is idle in these tests, in milliseconds. */
const readerIdleTimeout = 50

function startClient() {
  const request = new IncomingMessage(new Socket())
  const response = new ServerResponse(request)
  const readerEvents: string[] = []
  const gateway = { isClosing: false }
  const client = new ClientResponse({
    request,
    response,
    requestId: 'id',
    hasBody: true,
    passed: new PassedBytes(() => undefined),
    limits: { ...defaultLimits, readerIdleTimeout },
    isClosing: () => gateway.isClosing,
    bodies: new BodyBudget(defaultLimits.bodyBytes),
    turns: new ByteTurns(),
    remainingTurns: new ByteTurns(),
    tenantId: 't_0',
    bodyHolder: { bodyBytes: 0 },
    elapsed: () => performance.now(),
  })
  const reader = {
    readerReady: () => void readerEvents.push('ready'),
    readerIdle: () => void readerEvents.push('idle'),
  }
  return { request, response, client, reader, readerEvents, gateway }
}

/** Resolves after three times the idle timeout. */
async function timePassed(): Promise<void> {
  const begun = performance.now()
  await until(() => performance.now() - begun > 3 * readerIdleTimeout)
}

t.test('A connection serves another request unless a body is pending or the request is broken', async (t) => {
  const { client } = startClient()
  t.notOk(client.isLast)
  client.awaitContinue()
  t.ok(client.isLast, 'the next bytes may be a body or a request')
  client.sendContinue()
  t.notOk(client.isLast, 'the next bytes are the body')
  client.awaitContinue()
  client.neverReuse()
  client.sendContinue()
  t.ok(client.isLast, 'a broken connection stays broken')
  client.awaitContinue()
  client.sendContinue()
  t.ok(client.isLast)
})

t.test('A gateway that stops serves no other request on its connections', async (t) => {
  const { client, gateway } = startClient()
  gateway.isClosing = true
  t.ok(client.isLast)
})

t.test('The rest of a request is read only where the connection serves another request', async (t) => {
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
  t.equal(whole.request.listenerCount('data'), 0, 'nothing remains to read')
})

t.test('A client that reads nothing is idle after the timeout, once', async (t) => {
  const { client, reader, readerEvents } = startClient()
  client.awaitReader(reader)
  await until(() => readerEvents.length > 0)
  await timePassed()
  t.same(readerEvents, ['idle'])
})

t.test('A client that reads again is ready, and its timeout begins with the next wait', async (t) => {
  const { client, response, reader, readerEvents } = startClient()
  for (let n = 0; n < 3; n++) {
    client.awaitReader(reader)
    client.awaitReader(reader)
    response.emit('drain')
  }
  await timePassed()
  t.same(readerEvents, ['ready', 'ready', 'ready'], 'one event each, and no wait remains')
  t.equal(response.listenerCount('drain'), 1)
  client.awaitReader(reader)
  await until(() => readerEvents.length > 3)
  t.equal(readerEvents[3], 'idle')
})

t.test('A released response waits for no reader, and its body is destroyed', async (t) => {
  const { client, reader, readerEvents } = startClient()
  const body = client.openBody(
    () => readerEvents.push('stopped'),
    () => readerEvents.push('slow'),
  )
  client.awaitReader(reader)
  client.release()
  await timePassed()
  t.same(readerEvents, [])
  t.ok(body.destroyed)
})
