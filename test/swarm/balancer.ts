// A load balancer in front of the gateways of several hosts: each connection leads to the first host that accepts it, and ends when that
// host accepts no more. Hosts whose checks fail come last.
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import type { Test } from 'tap'

const connectMilliseconds = 1_000
const checkMilliseconds = 1_000
/** Failed checks in succession after which a host is down, and the connections to it end. */
const maxFailures = 2

interface Target {
  sockets: Set<Socket>
  failures: number
}

/** Opens a balancer for one port of all addresses. @returns its own port, at 127.0.0.1 */
export async function openBalancer(t: Test, addresses: readonly string[], port: number): Promise<number> {
  const clients = new Set<Socket>()
  const targets = new Map(addresses.map((host): [string, Target] => [host, { sockets: new Set(), failures: 0 }]))
  const isDown = (host: string) => (targets.get(host)?.failures ?? 0) >= maxFailures
  const server = createServer((client) => {
    clients.add(client)
    client.on('error', () => undefined)
    client.on('close', () => clients.delete(client))
    const inOrder = addresses.toSorted((one, other) => Number(isDown(one)) - Number(isDown(other)))
    void accepting(inOrder, port).then((target) => {
      if (target === undefined) {
        client.destroy()
        return
      }
      const { host, socket } = target
      const open = targets.get(host)?.sockets
      open?.add(socket)
      socket.on('error', () => client.destroy()).pipe(client)
      client.pipe(socket)
      client.on('close', () => socket.destroy())
      socket.on('close', () => {
        open?.delete(socket)
        client.destroy()
      })
    })
  })
  const check = async (host: string, target: Target) => {
    const socket = await opened(host, port)
    socket?.destroy()
    target.failures = socket === undefined ? target.failures + 1 : 0
    if (isDown(host)) for (const each of target.sockets) each.destroy()
  }
  const timer = setInterval(() => {
    for (const [host, target] of targets) void check(host, target)
  }, checkMilliseconds)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    clearInterval(timer)
    for (const socket of clients) socket.destroy()
    for (const { sockets } of targets.values()) for (const socket of sockets) socket.destroy()
    server.close()
  })
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('no port')
  return bound.port
}

/** Connects to the first address that accepts. */
async function accepting(
  addresses: readonly string[],
  port: number,
): Promise<{ host: string; socket: Socket } | undefined> {
  for (const host of addresses) {
    const socket = await opened(host, port)
    if (socket !== undefined) return { host, socket }
  }
  return undefined
}

/** Opens a connection; undefined if it is not accepted in time. */
async function opened(host: string, port: number): Promise<Socket | undefined> {
  const socket = connect({ host, port })
  const isOpen = await new Promise<boolean>((resolve) => {
    socket.once('connect', () => resolve(true))
    socket.once('error', () => resolve(false))
    socket.setTimeout(connectMilliseconds, () => resolve(false))
  })
  socket.setTimeout(0)
  if (isOpen) return socket
  socket.destroy()
  return undefined
}
