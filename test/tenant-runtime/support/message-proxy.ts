// A proxy before Postgres that stops at each message of a client, so that the test can decide what happens to the
// connection.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

export interface Message {
  /** The first byte: P for Parse, B Bind, D Describe, E Execute, C Close, S Sync, Q Query, X for the end. */
  type: string
  bytes: Buffer
  /** The index of the message in its exchange, from 0. An exchange ends with its Sync, or is a single query. */
  position: number
  /** Flushes, and returns when Postgres has responded to all earlier messages. */
  settled(): Promise<void>
}

/** The fate of a message: `pass` forwards it; a number forwards that many bytes of it and breaks both connections. */
export type Fate = 'pass' | number

export interface MessageProxy {
  port: number
  /** Decides on each message of a client that has logged in. If it is undefined, all messages pass. */
  decide: ((message: Message) => Promise<Fate>) | undefined
}

/**
 * Types of messages that end the response to one message of the client. E ends the responses to all until the next
 * Sync.
 */
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
      // Nothing is sent to a connection that has ended.
      if (postgres.destroyed) return
      const fate = (await proxy.decide?.({ type, bytes, position, settled })) ?? 'pass'
      position = type === 'S' || type === 'Q' ? 0 : position + 1
      if (fate === 'pass') {
        if (type !== 'S' && type !== 'H') sent++
        postgres.write(bytes)
        return
      }
      // The bytes must arrive at Postgres; its response is ignored.
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
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  t.teardown(async () => {
    const closed = once(server, 'close')
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
  })
  const proxy: MessageProxy = { port: address.port, decide: undefined }
  return proxy
}

/** Splits a stream into messages: a type of one byte, a length that includes itself, and the rest. */
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
