// A runtime whose host is gone, which closes no connection: requests that wait for it end, and others are not sent there until it accepts
// connections again. One that is only slow keeps its requests.
import { once } from 'node:events'
import { connect } from 'node:net'
import t, { type Test } from 'tap'
import { NotConnectedError } from '#gateway/forward/failures.ts'
import { watchRuntimes } from '#gateway/forward/runtime-watch.ts'
import { Upstreams } from '#gateway/forward/upstreams.ts'
import { defaultLimits } from '#gateway/limits.ts'
import { freePort } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { send, startSetting } from './support/gateway.ts'
import { startVanishingRuntime, type VanishingRuntime } from './support/vanishing-runtime.ts'

const minute = 60_000
/** A request that ended only with one of its time limits would last longer than the test. */
const limits = {
  watchInterval: 100,
  connectTimeout: 10 * minute,
  responseTimeout: 10 * minute,
  responseIdleTimeout: 10 * minute,
}

t.test('What waits for a runtime that is gone ends, and reads are served by another one', async (t) => {
  const { gateway, upstream, add } = await startSetting(t, { limits })
  const runtime = await startVanishingRuntime(t)
  await add('both', { runtimes: [runtime.url, upstream.url] })
  await add('alone', { runtimes: [runtime.url] })
  const read = send(gateway.port, { path: '/t/both/head' })
  await until(() => runtime.seen.length === 1, 'the read')
  const write = send(gateway.port, { path: '/t/alone/head', method: 'POST', body: 'x' })
  await until(() => runtime.seen.length === 2, 'the write')
  const socket = connect(gateway.port, '127.0.0.1')
  socket.write('GET /t/alone/raw HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n')
  await once(socket, 'data')
  const closed = once(socket, 'close')

  await runtime.vanish()
  t.equal((await read).status, 200)
  t.match(await write, { status: 502 }, 'whether a write was carried out is unknown')
  await closed
  t.pass('the upgraded connection ends')
  t.equal(upstream.seen.length, 1)
  for (let count = 0; count < 6; count++) t.equal((await send(gateway.port, { path: '/t/both/head' })).status, 200)
  t.equal(runtime.seen.length, 3, 'nothing waits for a connection to the one that is gone')

  runtime.return()
  await until(async () => {
    await send(gateway.port, { path: '/t/both/echo' })
    return runtime.seen.length > 3
  }, 'a request to the runtime that has returned')
})

t.test('A handshake that waits for a runtime that is gone is sent to another one', async (t) => {
  const { gateway, upstream, add } = await startSetting(t, { limits })
  const runtime = await startVanishingRuntime(t)
  await add('both', { runtimes: [runtime.url, upstream.url] })
  const response = handshake(t, gateway.port)
  await until(() => runtime.seen.length === 1, 'the handshake')
  await runtime.vanish()
  t.match(await response, /^HTTP\/1.1 101 /)
  t.equal(upstream.seen.length, 1)
})

t.test('A read or a handshake whose runtimes are gone one after the other may be sent again later', async (t) => {
  const { gateway, add } = await startSetting(t, { limits })
  const twoRuntimes = async () => {
    const runtimes = [await startVanishingRuntime(t), await startVanishingRuntime(t)]
    await add('both', { runtimes: runtimes.map(({ url }) => url) })
    return runtimes
  }
  const first = await twoRuntimes()
  const read = send(gateway.port, { path: '/t/both/head' })
  await vanishInTurn(first)
  const { status, headers } = await read
  t.equal(status, 503)
  t.ok(headers['retry-after'])

  const second = await twoRuntimes()
  const response = handshake(t, gateway.port)
  await vanishInTurn(second)
  t.match(await response, /^HTTP\/1.1 503 [^]*\nretry-after: /i)
})

/** Opens a connection that waits for the response to its upgrade. */
async function handshake(t: Test, port: number): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  t.teardown(() => socket.destroy())
  socket.write('GET /t/both/raw/head HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n')
  return String(await once(socket, 'data'))
}

/** Lets each runtime vanish when it has the request. */
async function vanishInTurn(remaining: VanishingRuntime[]): Promise<void> {
  while (remaining.length > 0) {
    const waited = () => remaining.findIndex(({ seen }) => seen.length > 0)
    await until(() => waited() >= 0, 'the request at a runtime')
    for (const runtime of remaining.splice(waited(), 1)) await runtime.vanish()
  }
}

t.test('A connection that no one accepts leads to the same, and one that is rejected does not', async (t) => {
  const runtime = await startVanishingRuntime(t)
  await runtime.vanish()
  const free = await freePort()
  const rejecting = `http://127.0.0.1:${free}`
  const upstreams = new Upstreams(defaultLimits, () => performance.now())
  upstreams.changed([runtime.url, rejecting], [])
  const watch = watchRuntimes({ upstreams, interval: 50 })
  t.teardown(() => watch.stop())
  const [silent, other] = [upstreams.choose([runtime.url], undefined), upstreams.choose([rejecting], undefined)]
  if (silent === undefined || other === undefined) throw new Error('no runtimes')
  const failed = (code: string) => new NotConnectedError(Object.assign(new Error('failed'), { code }))
  upstreams.markDown(silent, failed('UND_ERR_CONNECT_TIMEOUT'))
  await until(() => silent.isGone, 'the silent one is gone')
  t.ok(upstreams.choose([runtime.url, rejecting], undefined) === other, 'another one has precedence')
  upstreams.markDown(other, failed('ECONNREFUSED'))
  t.equal(other.isSuspect, false)
  runtime.return()
  await until(() => !silent.isGone, 'it has returned')
})

t.test('A runtime that accepts connections keeps its requests, however long they last', async (t) => {
  const { gateway, upstream, add } = await startSetting(t, { limits: { ...limits, watchInterval: 20 } })
  await add('acme')
  const slow = send(gateway.port, { path: '/t/acme/wait' })
  await until(() => upstream.waiting.length === 1)
  await new Promise((resolve) => setTimeout(resolve, 1_000))
  upstream.waiting[0]?.end('late')
  t.match(await slow, { status: 200, body: 'late' })
  t.equal(upstream.seen.length, 1, 'it was sent once')
})
