// Listens for connections so that many clients at once do not delay each other.
import { once } from 'node:events'
import { Server as HttpServer } from 'node:http'
import { createServer, type Server, type Socket } from 'node:net'

/**
 * The maximum number of connections that the kernel has opened and a service has not accepted yet; the kernel may have a lower
 * one (`net.core.somaxconn`). With Node's 511, a client that opens thousands at once fills the queue, and the kernel drops the
 * first packets of all others, who repeat them only after a second.
 */
export const listenBacklog = 4_096

/**
 * The number of listeners on one port. In a round of the event loop, Node accepts one connection of each. With a single one,
 * a thousand connections of one client wait for a thousand rounds, and so do all clients that connect after them.
 */
const listeners = 16

/** The options of `listen`, as far as this module sets them. */
export interface ListenOptions {
  host: string
  port: number
  backlog: number
  reusePort: boolean
}

/** The address and port that a server is to listen on. */
interface WideListenOptions extends Pick<ListenOptions, 'host' | 'port'> {
  /** Whether other processes of the same user may listen on the port, too. The kernel then divides the connections. */
  isShared?: boolean
}

/** A server that listens. */
export interface Listening {
  port: number
  /**
   * Stops accepting connections on all listeners but the server's own, which the caller closes.
   * @returns a promise that resolves when the connections of these listeners have ended; the server ends idle ones
   */
  close(): Promise<void>
}

/**
 * Listens on a port with several listeners, where the system can share a port (Linux); otherwise with one.
 * @param listen listens with the server itself; by default, its method
 * @throws Error with the system's code if the port is in use, and not shared
 */
export async function listenWidely(
  server: Server,
  { host, port, isShared = false }: WideListenOptions,
  listen: (options: ListenOptions) => Promise<unknown> = (options) => open(server, options),
): Promise<Listening> {
  const reusePort = process.platform === 'linux'
  // Shared ports of the same user are never in use. A listener that does not share its port finds out.
  if (reusePort && port !== 0 && !isShared) await assertFree(host, port)
  await listen({ host, port, backlog: listenBacklog, reusePort })
  const shared = portOf(server)
  const more: Server[] = []
  try {
    while (reusePort && more.length < listeners - 1) more.push(await listenFor(server, host, shared))
  } catch (cause) {
    for (const one of more) one.close()
    server.close()
    throw cause
  }
  return {
    port: shared,
    async close() {
      await Promise.all(more.map(close))
    },
  }
}

/**
 * Listens on a port with the server's own listener only.
 * @throws Error with the system's code if the port is in use
 */
export async function listenOnce(
  server: Server,
  { host, port }: Pick<ListenOptions, 'host' | 'port'>,
): Promise<Listening> {
  await open(server, { host, port, backlog: listenBacklog, reusePort: false })
  return { port: portOf(server), close: () => Promise.resolve() }
}

async function assertFree(host: string, port: number): Promise<void> {
  const probe = createServer()
  await open(probe, { host, port, backlog: listenBacklog, reusePort: false })
  await close(probe)
}

/** Opens a further listener of a server, whose connections are the server's. */
async function listenFor(server: Server, host: string, port: number): Promise<Server> {
  // As in every server of node:http: a client may end its side of the connection before the response.
  const one = createServer({ noDelay: true, allowHalfOpen: server instanceof HttpServer })
  one.on('connection', (socket: Socket) => server.emit('connection', socket))
  one.on('error', (error) => server.emit('error', error))
  await open(one, { host, port, backlog: listenBacklog, reusePort: true })
  return one
}

async function open(server: Server, options: ListenOptions): Promise<void> {
  server.listen(options)
  await once(server, 'listening')
}

/** Stops listening, and waits until all connections have ended. */
async function close(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  await closed
}

function portOf(server: Server): number {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server does not listen on a port.')
  return address.port
}
