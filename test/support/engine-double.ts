// Things in front of a Docker Engine's socket: a relay that can be cut, and a server that answers as it is told.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'

export interface Relay {
  /** `unix://…` */
  address: string
  /** Ends every connection; new ones are taken. */
  cut(): void
}

/** A socket that passes everything on to another. */
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

/** An Engine in name only. Returns its address. */
export async function openDouble(t: Test, response: RequestListener): Promise<string> {
  const path = await socketPath(t)
  const server = createHttpServer(response)
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
