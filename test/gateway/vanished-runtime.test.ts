// A runtime whose host is gone, which closes no connection: requests that wait for it end, and others are not sent there until it accepts
// connections again. One that is only slow keeps its requests.
import { once } from 'node:events'
import { connect } from 'node:net'
import t from 'tap'
import { NotConnectedError } from '#gateway/forward/failures.ts'
import { watchRuntimes } from '#gateway/forward/runtime-watch.ts'
import { Upstreams } from '#gateway/forward/upstreams.ts'
import { defaultLimits } from '#gateway/limits.ts'
import { freePort } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { send, startSetting } from './support/gateway.ts'
import { startVanishingRuntime } from './support/vanishing-runtime.ts'

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

t.test('A read whose runtimes are gone one after the other may be sent again later', async (t) => {
  const { gateway, add } = await startSetting(t, { limits })
  const remaining = [await startVanishingRuntime(t), await startVanishingRuntime(t)]
  await add('both', { runtimes: remaining.map(({ url }) => url) })
  const read = send(gateway.port, { path: '/t/both/head' })
  while (remaining.length > 0) {
    const waited = () => remaining.findIndex(({ seen }) => seen.length > 0)
    await until(() => waited() >= 0, 'the read at a runtime')
    for (const runtime of remaining.splice(waited(), 1)) await runtime.vanish()
  }
  const { status, headers } = await read
  t.equal(status, 503)
  t.ok(headers['retry-after'])
})

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
