// A proxy in front of the engine's socket. When a test closes it, the control plane alone cannot reach the engine.
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { engineSocket } from './docker.ts'

export interface EngineProxy {
  /** Address of the proxy: `unix://…`. */
  host: string
  /** Closes the socket and all connections. */
  close(): Promise<void>
  open(): Promise<void>
}

export async function openEngineProxy(t: Test): Promise<EngineProxy> {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-proxy-'))
  const path = join(directory, 'engine.sock')
  const sockets = new Set<Socket>()
  let server: Server | undefined

  const pass = (client: Socket): void => {
    const engine = connect({ path: engineSocket(), allowHalfOpen: true })
    for (const [one, other] of [
      [client, engine],
      [engine, client],
    ] as const) {
      sockets.add(one)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        sockets.delete(one)
        other.destroy()
      })
    }
    client.pipe(engine).pipe(client)
  }

  const proxy: EngineProxy = {
    host: `unix://${path}`,
    async close() {
      const closed = server === undefined ? undefined : once(server, 'close')
      server?.close()
      server = undefined
      for (const socket of sockets) socket.destroy()
      await closed
    },
    async open() {
      server = createServer({ allowHalfOpen: true }, pass).listen(path)
      await once(server, 'listening')
    },
  }
  await proxy.open()
  t.teardown(async () => {
    await proxy.close()
    await rm(directory, { recursive: true })
  })
  return proxy
}
