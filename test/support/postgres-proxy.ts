// A TCP proxy before Postgres that loses one side of an exchange: the question on its way there, or its answer on the way
// back, after Postgres has done what was asked. The connection is cut with it, as by a network that fails.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

export type Loss = 'question' | 'answer'

export interface PostgresProxy {
  port: number
  /** What is lost of each exchange that begins from now on; undefined for nothing. */
  lose: (() => Loss | undefined) | undefined
  /** Exchanges that were lost. */
  readonly lost: number
}

/** ReadyForQuery: its type, its length, and the transaction's state. */
const readyBytes = 6
const ready = 'Z'.charCodeAt(0)

export async function openPostgresProxy(t: Test, port: number): Promise<PostgresProxy> {
  const sockets = new Set<Socket>()
  let lost = 0
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
    // The first exchange is the login, which is none of those that are lost.
    let loggedIn = false
    let between = true
    let responseIsLost = false
    client.on('data', (chunk: Buffer) => {
      if (loggedIn && between) {
        between = false
        const loss = proxy.lose?.()
        if (loss !== undefined) lost++
        if (loss === 'question') {
          cut()
          return
        }
        responseIsLost = loss === 'answer'
      }
      postgres.write(chunk)
    })
    postgres.on('data', (chunk: Buffer) => {
      // An answer ends with it, and one-trip exchanges end with nothing else.
      const ended =
        chunk.length >= readyBytes &&
        chunk[chunk.length - readyBytes] === ready &&
        chunk.readUInt32BE(chunk.length - readyBytes + 1) === 5
      if (!responseIsLost) client.write(chunk)
      else if (ended) cut()
      if (ended) loggedIn = between = true
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
  const proxy: PostgresProxy = {
    port: address.port,
    lose: undefined,
    get lost() {
      return lost
    },
  }
  return proxy
}
