// A load balancer in front of the gateways of several hosts: each connection leads to the first host that accepts it.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

const connectMilliseconds = 1_000

/** Opens a balancer for one port of all addresses. @returns its own port, at 127.0.0.1 */
export async function openBalancer(t: Test, addresses: readonly string[], port: number): Promise<number> {
  const open = new Set<Socket>()
  const server = createServer((client) => {
    open.add(client)
    client.on('error', () => undefined)
    void accepting(addresses, port).then((target) => {
      if (target === undefined) {
        client.destroy()
        return
      }
      open.add(target)
      target.on('error', () => client.destroy()).pipe(client)
      client.pipe(target)
      client.on('close', () => target.destroy())
      target.on('close', () => client.destroy())
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    for (const socket of open) socket.destroy()
    server.close()
  })
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('no port')
  return bound.port
}

/** Connects to the first address that accepts. */
async function accepting(addresses: readonly string[], port: number): Promise<Socket | undefined> {
  for (const host of addresses) {
    const socket = connect({ host, port })
    const isOpen = await new Promise<boolean>((resolve) => {
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
      socket.setTimeout(connectMilliseconds, () => resolve(false))
    })
    socket.setTimeout(0)
    if (isOpen) return socket
    socket.destroy()
  }
  return undefined
}
