// Compression of messages: only when the operator has turned it on, with fewer bytes on the wire, and with bounded memory.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { deflateRawSync, constants } from 'node:zlib'
import t from 'tap'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { until } from '#test/support/until.ts'
import { CompressedConnections } from '#tenant-runtime/realtime/compression.ts'
import { bytesOf, RawSocket } from './support/raw-socket.ts'

const topic = 'realtime:room'
const payload = { text: 'the lamp is lit, '.repeat(2_000) }

/** Sends a large message by HTTP to a client. @returns the extensions of its connection, and the bytes that it received */
async function receive(tenant: TestTenant): Promise<{ extensions: string; bytes: number }> {
  const raw = await RawSocket.open(tenant)
  await raw.join(topic)
  const before = bytesOf(raw.socket)
  const body = { messages: [{ topic: 'room', event: 'x', payload }] }
  const { status } = await tenant.request('POST', '/realtime/v1/api/broadcast', { as: 'service', body })
  if (status !== 202) throw new Error(`status ${status}`)
  const frame = await raw.until(({ event }) => event === 'broadcast', 'the message')
  t.same(frame.payload['payload'], payload)
  const { ref } = await raw.join('realtime:back', { broadcast: { ack: true, self: true } })
  await raw.call('realtime:back', 'broadcast', { event: 'y', payload }, ref)
  await until(() => raw.of('broadcast').length === 2, 'the message to itself')
  t.same(raw.of('broadcast')[1]?.payload['payload'], payload)
  const { extensions } = raw.socket
  const bytes = bytesOf(raw.socket) - before
  raw.leave()
  return { extensions, bytes }
}

/** Opens a WebSocket by hand. @returns the socket and the head of the response */
async function openByHand(tenant: TestTenant, extensions: string): Promise<{ socket: Socket; head: string }> {
  const socket = connect(tenant.port, '127.0.0.1')
  const { pathname, host } = new URL(tenant.url)
  const path = `${pathname.replace(/\/$/, '')}/realtime/v1/websocket?apikey=${tenant.publishableKey}&vsn=2.0.0`
  socket.write(
    `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n` +
      `sec-websocket-key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nsec-websocket-extensions: ${extensions}\r\n\r\n`,
  )
  const [head] = (await once(socket, 'data')) as [Buffer]
  return { socket, head: head.toString('latin1') }
}

/** Returns a masked frame with the bit that marks a compressed message. */
function compressedFrame(content: Buffer): Buffer {
  const head = Buffer.alloc(14)
  head[0] = 0xc1
  head[1] = 0x80 | 127
  head.writeBigUInt64BE(BigInt(content.length), 2)
  // The mask is zero, so that the content remains as it is.
  return Buffer.concat([head, content])
}

t.test('Compression is off by default, and messages have their whole length on the wire', async (t) => {
  const runtime = await startRuntime(t)
  const { extensions, bytes } = await receive(await runtime.addTenant())
  t.equal(extensions, '')
  t.ok(bytes > 60_000, String(bytes))
})

t.test('Compression that is on', async (t) => {
  const runtime = await startRuntime(t, { compressesMessages: true })

  t.test('Long messages are compressed in both directions, and keep their content', async (t) => {
    const { extensions, bytes } = await receive(await runtime.addTenant())
    t.equal(extensions, 'permessage-deflate')
    t.ok(bytes < 6_000, String(bytes))
  })

  t.test('No context remains between messages, and the windows are small', async (t) => {
    const tenant = await runtime.addTenant()
    const { socket, head } = await openByHand(tenant, 'permessage-deflate; client_max_window_bits')
    t.match(head, /^HTTP\/1\.1 101 /)
    for (const part of ['server_no_context_takeover', 'client_no_context_takeover', 'server_max_window_bits=12'])
      t.match(head, part)
    socket.destroy()
  })

  t.test('A client that does not offer it gets uncompressed messages', async (t) => {
    const tenant = await runtime.addTenant()
    const { socket, head } = await openByHand(tenant, 'x-other')
    t.match(head, /^HTTP\/1\.1 101 /)
    t.notMatch(head.toLowerCase(), 'sec-websocket-extensions')
    socket.destroy()
  })

  t.test('A small frame that becomes larger than the limit ends the connection, with little memory', async (t) => {
    const tenant = await runtime.addTenant({ limits: { realtime_payload_bytes: 20_000 } })
    const bomb = deflateRawSync(Buffer.alloc(512 * 1024 * 1024), { level: 9, finishFlush: constants.Z_SYNC_FLUSH })
    t.ok(bomb.length < 600_000)
    // The frame itself must be smaller than the limit: a cut stream is decompressed until it ends.
    const frame = compressedFrame(bomb.subarray(0, 60_000))
    const before = process.memoryUsage().rss
    for (let n = 0; n < 10; n++) {
      const { socket } = await openByHand(tenant, 'permessage-deflate; client_max_window_bits')
      const received: Buffer[] = []
      socket.on('data', (chunk: Buffer) => received.push(chunk)).on('error', () => undefined)
      socket.write(frame)
      await once(socket, 'close')
      const close = Buffer.concat(received)
      t.same([close[0], close.readUInt16BE(2)], [0x88, 1_009])
    }
    const growth = process.memoryUsage().rss - before
    t.ok(growth < 64 * 1024 * 1024, `${growth} bytes`)
    const raw = await RawSocket.open(tenant)
    t.match(await raw.call('phoenix', 'heartbeat', {}), { payload: { status: 'ok' } })
    raw.leave()
  })

  t.test('Data that is not compressed data ends the connection', async (t) => {
    const tenant = await runtime.addTenant()
    const { socket } = await openByHand(tenant, 'permessage-deflate; client_max_window_bits')
    socket.write(compressedFrame(Buffer.from('not compressed')))
    const [close] = (await once(socket, 'data')) as [Buffer]
    t.same([close[0], close.readUInt16BE(2)], [0x88, 1_007])
    socket.destroy()
  })

  t.test('Nothing of all this was logged as an error', async (t) => t.same(runtime.errors, []))
})

t.test('The connections with compression are limited, for each tenant and for all', async (t) => {
  const connections = new CompressedConnections()
  const taken = (tenant: string) => {
    let count = 0
    while (connections.take(tenant)) count++
    return count
  }
  t.same(['a', 'b', 'c', 'd', 'e'].map(taken), [250, 250, 250, 250, 0])
  connections.release('a')
  t.equal(connections.take('e'), true)
  t.equal(connections.take('a'), false)
})
