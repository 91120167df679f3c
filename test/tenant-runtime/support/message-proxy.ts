// A proxy before Postgres that stops at each message of a client: the test decides there what becomes of the connection.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

export interface Message {
  /** The first byte: P for Parse, B Bind, D Describe, E Execute, C Close, S Sync, Q Query, X for the end. */
  type: string
  bytes: Buffer
  /** Of the exchange's messages, from 0; each exchange ends with its Sync, or is a query alone. */
  position: number
  /** Has Postgres answer everything up to here, and waits until it has. */
  settled(): Promise<void>
}

/** `pass` sends the message on; a number sends so many bytes of it and breaks both connections. */
export type Fate = 'pass' | number

export interface MessageProxy {
  port: number
  /** Asked for each message of a client that has logged in; without it all pass. */
  decide: ((message: Message) => Promise<Fate>) | undefined
}

/** A message of which type ends the answer to one message of the client; E ends the answer to all until the next Sync. */
const responses = new Set(['1', '2', '3', 'T', 'n', 'C', 'I'])
const flush = Buffer.from([0x48, 0, 0, 0, 4])

export async function openMessageProxy(t: Test, port: number): Promise<MessageProxy> {
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const postgres = connect({ host: '127.0.0.1', port })
    const cut = () => {
      client.destroy()
      postgres.destroy()
    }
    for (const socket of [client, postgres]) {
      sockets.add(socket)
      socket.setNoDelay(true)
      socket.on('error', cut)
      socket.on('close', () => {
        sockets.delete(socket)
        cut()
      })
    }
    let isLoggedIn = false
    let sent = 0
    let response = 0
    let changed: () => void = () => undefined

    const readResponses = messageReader((type) => {
      if (type === 'Z') {
        isLoggedIn = true
        sent = response = 0
      } else if (type === 'E') response = Infinity
      else if (responses.has(type)) response++
      changed()
    })
    postgres.on('data', (chunk: Buffer) => {
      readResponses(chunk)
      client.write(chunk)
    })
    postgres.once('close', () => changed())

    const settled = async () => {
      const isOver = () => response >= sent || postgres.destroyed
      if (isOver()) return
      postgres.write(flush)
      while (!isOver()) await new Promise<void>((resolve) => (changed = resolve))
    }
    let position = 0
    const pass = async (type: string, bytes: Buffer) => {
      // What is left of a connection that has ended concerns nobody.
      if (postgres.destroyed) return
      const fate = (await proxy.decide?.({ type, bytes, position, settled })) ?? 'pass'
      position = type === 'S' || type === 'Q' ? 0 : position + 1
      if (fate === 'pass') {
        if (type !== 'S' && type !== 'H') sent++
        postgres.write(bytes)
        return
      }
      // What was sent must arrive; what Postgres says to it is nobody's.
      client.destroy()
      postgres.end(bytes.subarray(0, fate))
    }
    let queue = Promise.resolve()
    const readQueries = messageReader((type, bytes) => {
      queue = queue.then(() => pass(type, bytes)).catch(cut)
    })
    client.on('data', (chunk: Buffer) => {
      if (isLoggedIn) readQueries(chunk)
      else postgres.write(chunk)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port was given')
  t.teardown(async () => {
    const closed = once(server, 'close')
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
  })
  const proxy: MessageProxy = { port: address.port, decide: undefined }
  return proxy
}

/** Cuts a stream into messages: a type of one byte, a length that counts itself, the rest. */
function messageReader(found: (type: string, bytes: Buffer) => void): (chunk: Buffer) => void {
  let rest: Buffer = Buffer.alloc(0)
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length >= 5) {
      const length = 1 + rest.readUInt32BE(1)
      if (rest.length < length) return
      found(String.fromCharCode(rest.readUInt8(0)), rest.subarray(0, length))
      rest = rest.subarray(length)
    }
  }
}
