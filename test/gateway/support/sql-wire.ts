// Packets of SQL clients and servers as they are on the wire, and a double of a server for what a real one does not do.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'
import { until } from '#test/support/until.ts'

/** Returns a packet without a type: length, code and the rest. */
export function packet(code: number, rest: Buffer | string = ''): Buffer {
  const head = Buffer.alloc(8)
  const body = Buffer.from(rest)
  head.writeUInt32BE(8 + body.length, 0)
  head.writeUInt32BE(code, 4)
  return Buffer.concat([head, body])
}

export const sslRequest = packet(80_877_103)
export const gssRequest = packet(80_877_104)
export const cancelRequest = (key: Buffer) => packet(80_877_102, key)

/** @param parameters name, value, … */
export function startup(parameters: readonly string[], version = 0x30000): Buffer {
  return packet(version, `${parameters.map((text) => `${text}\0`).join('')}\0`)
}

/** Returns a message of a server: type, length and the rest. */
export function message(type: string, rest: Buffer | string = ''): Buffer {
  const body = Buffer.from(rest)
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeUInt32BE(4 + body.length, 1)
  return Buffer.concat([head, body])
}

/** The message AuthenticationOk. */
export const authenticationOk = message('R', Buffer.alloc(4))

/** Sends bytes, and returns all bytes that arrive until the other side ends the connection. */
export async function exchange(port: number, bytes: Buffer): Promise<Buffer> {
  const socket = connect(port, '127.0.0.1')
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk)).on('error', () => undefined)
  socket.write(bytes)
  await new Promise((resolve) => socket.on('close', resolve))
  return Buffer.concat(chunks)
}

/** Connects a client that may begin the handshake. @throws Error if the proxy declines TLS */
export async function afterSslRequest(port: number): Promise<Socket> {
  const client = connect(port, '127.0.0.1')
  client.on('error', () => undefined)
  client.write(sslRequest)
  const [response] = (await once(client, 'data')) as [Buffer]
  if (String(response) === 'S') return client
  client.destroy()
  throw new Error(`The proxy responded with ${String(response)}.`)
}

/** Returns the fields of an ErrorResponse by their letters. */
export function errorFields(bytes: Buffer): Record<string, string> {
  if (bytes.toString('latin1', 0, 1) !== 'E' || bytes.readUInt32BE(1) !== bytes.length - 1)
    throw new Error(`no error: ${bytes.toString('latin1')}`)
  const fields = bytes
    .toString('utf8', 5)
    .split('\0')
    .filter((field) => field !== '')
  return Object.fromEntries(fields.map((field) => [field.slice(0, 1), field.slice(1)]))
}

export interface FakePostgres {
  address: string
  /** The connections, in the order in which they came. */
  sockets: Socket[]
  /** Returns all bytes that the nth connection has sent. */
  received(nth: number): Buffer
}

/** @param onConnection handles a new connection; the default admits the client */
export async function startFakePostgres(
  t: Test,
  onConnection: (socket: Socket) => void = admitClient,
): Promise<FakePostgres> {
  const chunks: Buffer[][] = []
  const fake: FakePostgres = { address: '', sockets: [], received: (nth) => Buffer.concat(chunks[nth] ?? []) }
  const server = createServer((socket) => {
    const received: Buffer[] = []
    chunks.push(received)
    fake.sockets.push(socket)
    socket.on('error', () => undefined)
    socket.on('data', (chunk: Buffer) => received.push(chunk))
    onConnection(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  fake.address = `127.0.0.1:${address.port}`
  t.teardown(async () => {
    const closed = once(server, 'close')
    server.close()
    for (const socket of fake.sockets) socket.destroy()
    await closed
  })
  return fake
}

export function admitClient(socket: Socket): void {
  socket.once('data', () => socket.write(authenticationOk))
}

/** Connects a client that sends its startup packet, and waits until the server has the connection. */
export async function startLogin(
  t: Test,
  port: number,
  fake: FakePostgres,
  user: string,
  localAddress = '127.0.0.1',
): Promise<Socket> {
  const before = fake.sockets.length
  const socket = connect({ host: '127.0.0.1', port, localAddress })
  socket.on('error', () => undefined)
  t.teardown(() => socket.destroy())
  socket.write(startup(['user', user]))
  await until(() => fake.sockets.length > before, 'the session')
  return socket
}

/** Opens a session, with a client that the server has admitted. */
export async function openSession(t: Test, port: number, fake: FakePostgres, user: string): Promise<Socket> {
  const socket = await startLogin(t, port, fake, user)
  const [first] = (await once(socket, 'data')) as [Buffer]
  if (!first.subarray(0, authenticationOk.length).equals(authenticationOk))
    throw new Error(`not admitted: ${first.toString('latin1')}`)
  return socket
}
