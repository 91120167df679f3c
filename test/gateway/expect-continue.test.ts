// A request with `Expect: 100-continue` has the time limits of the same request without it.
import { connect, type Socket } from 'node:net'
import t, { type Test } from 'tap'
import { until } from '#test/support/until.ts'
import { sendRaw, startSetting } from './support/gateway.ts'

/** The time limit for a response's head in these tests, in milliseconds. */
const responseTimeout = 300

const head = (path: string, length: number, expect: boolean) =>
  `POST /t/acme${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n${expect ? 'Expect: 100-continue\r\n' : ''}\r\n`

interface Client {
  socket: Socket
  text: string
}

function client(t: Test, port: number): Client {
  const socket = connect(port, '127.0.0.1')
  const one = { socket, text: '' }
  socket.on('data', (chunk: Buffer) => (one.text += chunk.toString('latin1')))
  socket.on('error', () => undefined)
  t.teardown(() => socket.destroy())
  return one
}

/** Sends a head and, where the client expects it, waits for the interim response. */
async function begin(t: Test, port: number, path: string, length: number, expect: boolean): Promise<Client> {
  const one = client(t, port)
  one.socket.write(head(path, length, expect))
  if (expect) await until(() => one.text.startsWith('HTTP/1.1 100 Continue\r\n\r\n'), '100 Continue')
  return one
}

/** Resolves after three times the time limit. */
async function limitPassed(): Promise<void> {
  const begun = performance.now()
  await until(() => performance.now() - begun > 3 * responseTimeout)
}

const statusesOf = ({ text }: Client) => [...text.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))

for (const expect of [true, false]) {
  const which = expect ? 'with Expect' : 'without Expect'

  t.test(`A slow upload is accepted as long as bytes arrive, ${which}`, async (t) => {
    const { gateway, upstream, add } = await startSetting(t, { limits: { responseTimeout } })
    await add('acme')
    const begun = performance.now()
    const length = 100_000
    const uploading = await begin(t, gateway.port, '/sink', length, expect)
    let sent = 0
    while (performance.now() - begun < 3 * responseTimeout) {
      uploading.socket.write('x')
      sent++
      await until(() => upstream.received === sent, 'a chunk at the runtime')
    }
    uploading.socket.write('x'.repeat(length - sent))
    await until(() => /HTTP\/1\.1 [2-5]/.test(uploading.text), 'the response')
    t.same(statusesOf(uploading), expect ? [100, 200] : [200])
    t.equal(upstream.received, length)
  })

  t.test(`A client that pauses between two chunks has the timeout of bodies, ${which}`, async (t) => {
    const { gateway, upstream, add } = await startSetting(t, { limits: { responseTimeout } })
    await add('acme')
    const uploading = await begin(t, gateway.port, '/sink', 2, expect)
    uploading.socket.write('x')
    await until(() => upstream.received === 1, 'the first chunk')
    await limitPassed()
    uploading.socket.write('x')
    await until(() => /HTTP\/1\.1 [2-5]/.test(uploading.text), 'the response')
    t.match(uploading.text, /HTTP\/1\.1 200 /)
  })

  t.test(`A function has its own timeout, ${which}`, async (t) => {
    const { gateway, upstream, add } = await startSetting(t, {
      limits: { responseTimeout, functionResponseTimeout: 60_000 },
    })
    await add('acme')
    const invoking = await begin(t, gateway.port, '/functions/v1/slow/wait', 3, expect)
    invoking.socket.write('abc')
    await until(() => upstream.waiting.length === 1, 'the invocation')
    await limitPassed()
    upstream.waiting[0]?.end('done')
    await until(() => /HTTP\/1\.1 [2-5]/.test(invoking.text), 'the response')
    t.same(statusesOf(invoking), expect ? [100, 200] : [200])
  })

  for (const [what, path, limits] of [
    ['A function beyond its own timeout', '/functions/v1/slow/wait', { functionResponseTimeout: responseTimeout }],
    ['A runtime that has the body and does not respond', '/wait', { responseTimeout }],
    ['A runtime that stops reading the body', '/stall', { responseTimeout }],
  ] as const) {
    t.test(`${what} returns 504, ${which}`, async (t) => {
      const { gateway, upstream, add } = await startSetting(t, {
        limits: { ...limits, bodyIdleTimeout: 60_000, remainingBytes: 64 * 1024 * 1024 },
      })
      await add('acme')
      const body = path === '/stall' ? Buffer.alloc(32 * 1024 * 1024) : Buffer.alloc(3)
      const one = await begin(t, gateway.port, path, body.length, expect)
      one.socket.write(body)
      await until(() => /HTTP\/1\.1 504 [^]*RUNTIME_TIMEOUT/.test(one.text), 'the 504')
      // A runtime that reads nothing does not notice the end.
      if (path !== '/stall') await until(() => upstream.open === 0, 'the end at the runtime')
    })
  }

  t.test(`A client that does not send its body gets 408, ${which}`, async (t) => {
    const { gateway, upstream, add } = await startSetting(t, { limits: { bodyIdleTimeout: responseTimeout } })
    await add('acme')
    const one = await begin(t, gateway.port, '/sink', 3, expect)
    await until(() => /HTTP\/1\.1 408 [^]*REQUEST_TIMEOUT/.test(one.text), 'the 408')
    await until(() => upstream.open === 0, 'the end at the runtime')
  })

  t.test(`A response that stops in the middle is cut off, ${which}`, async (t) => {
    const { gateway, upstream, add } = await startSetting(t, { limits: { responseIdleTimeout: responseTimeout } })
    await add('acme')
    const one = await begin(t, gateway.port, '/events', 1, expect)
    one.socket.write('x')
    await until(() => one.text.includes('data: first'), 'the first chunk')
    await until(() => one.socket.destroyed, 'the end of the connection')
    await until(() => upstream.open === 0, 'the end at the runtime')
  })
}

t.test('A runtime that rejects the request before 100 Continue receives nothing of the body', async (t) => {
  const { gateway, upstream, add } = await startSetting(t)
  await add('acme')
  for (const status of [401, 413, 417]) {
    const got = await sendRaw(gateway.port, head(`/early/${status}`, 1_000_000, true))
    t.match(got, new RegExp(`^HTTP/1\\.1 ${status} `), 'without an interim response')
  }
  t.equal(upstream.received, 0)
  await until(() => upstream.open === 0, 'the end at the runtime')
})

t.test('The wait for 100 Continue has its own timeout, and then the body is sent', async (t) => {
  const { gateway, upstream, add } = await startSetting(t, { limits: { continueTimeout: 50 } })
  await add('acme')
  const one = await begin(t, gateway.port, '/mute', 3, true)
  one.socket.write('abc')
  await until(() => /HTTP\/1\.1 [2-5]/.test(one.text), 'the response')
  t.same(statusesOf(one), [100, 200])
  t.equal(upstream.received, 3)
})
