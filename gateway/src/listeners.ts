// Opens and closes the gateway's listeners.
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Server as SocketServer } from 'node:net'
import { listenBacklog } from '@tenantry/contract'

const sweepMilliseconds = 50

/** A server, and where it is to listen. */
interface Listener {
  server: SocketServer
  host: string
  /** The port; 0 selects a free one. */
  port: number
}

/**
 * Listens on all addresses, or on none.
 * @returns the ports, in the order of the listeners; undefined for one that is undefined
 * @throws Error when a port is in use
 */
export async function listenOnAll(all: readonly (Listener | undefined)[]): Promise<(number | undefined)[]> {
  const ports: (number | undefined)[] = []
  try {
    for (const one of all) ports.push(one && (await listen(one)))
  } catch (cause) {
    for (const one of all) one?.server.close()
    throw cause
  }
  return ports
}

async function listen({ server, host, port }: Listener): Promise<number> {
  server.listen({ port, host, backlog: listenBacklog })
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server does not listen on a port.')
  return address.port
}

/** Accepts nothing new, ends idle and live connections, and destroys the remaining ones after the grace period. */
export async function closeWithin(server: Server, grace: number, endLive: () => void): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeIdleConnections()
  endLive()
  // A connection becomes idle when its response ends, which may be at any time.
  const sweep = setInterval(() => server.closeIdleConnections(), sweepMilliseconds)
  const timer = setTimeout(() => server.closeAllConnections(), grace)
  await closed
  clearInterval(sweep)
  clearTimeout(timer)
}
