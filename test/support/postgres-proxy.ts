// A TCP proxy in front of Postgres that loses requests, or the responses to requests which Postgres has carried out. It cuts
// the connection too, as a failing network does.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

export type Loss = 'request' | 'response'

export interface PostgresProxy {
  port: number
  /** Decides for each new round trip which side is lost; undefined loses nothing. */
  lose: (() => Loss | undefined) | undefined
  /** Number of round trips that were lost. */
  readonly lost: number
}

/** Size of a ReadyForQuery message: its type, its length and the transaction's state. */
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
    // The first round trip is the login, which is never lost.
    let loggedIn = false
    let between = true
    let responseIsLost = false
    client.on('data', (chunk: Buffer) => {
      if (loggedIn && between) {
        between = false
        const loss = proxy.lose?.()
        if (loss !== undefined) lost++
        if (loss === 'request') {
          cut()
          return
        }
        responseIsLost = loss === 'response'
      }
      postgres.write(chunk)
    })
    postgres.on('data', (chunk: Buffer) => {
      // A response ends with ReadyForQuery.
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
