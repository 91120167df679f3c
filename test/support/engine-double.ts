// Doubles of a Docker Engine's socket: a relay that a test can cut, and an HTTP server with a test's own request handler.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

export interface Relay {
  /** A URL that begins with `unix://`. */
  address: string
  /** Closes all connections; the relay accepts new ones. */
  cut(): void
}

/** Opens a socket that forwards all bytes to another socket. */
export async function openRelay(t: Test, target: string): Promise<Relay> {
  const path = await socketPath(t)
  const open = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const engine = connect({ path: target, allowHalfOpen: true })
    for (const socket of [client, engine]) {
      open.add(socket)
      socket.on('close', () => open.delete(socket)).on('error', () => undefined)
    }
    client.pipe(engine).pipe(client)
    client.on('close', () => engine.destroy())
    engine.on('close', () => client.destroy())
  })
  server.listen(path)
  await once(server, 'listening')
  const cut = () => {
    for (const socket of open) socket.destroy()
  }
  t.teardown(() => {
    cut()
    server.close()
  })
  return { address: `unix://${path}`, cut }
}

/** Opens an HTTP server in place of an Engine. @returns its address */
export async function openDouble(t: Test, handler: RequestListener): Promise<string> {
  const path = await socketPath(t)
  const server = createHttpServer(handler)
  server.listen(path)
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  return `unix://${path}`
}

async function socketPath(t: Test): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-engine-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  return join(directory, 'engine.sock')
}
