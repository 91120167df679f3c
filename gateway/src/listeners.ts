// Opens and closes the gateway's listeners.
import { once } from 'node:events'
import type { Server } from 'node:http'
import type { Server as SocketServer } from 'node:net'
import { listenOnce, listenWidely, type Listening } from '@tenantry/contract'

const sweepMilliseconds = 50

/** A server, and where it is to listen. */
interface Listener {
  server: SocketServer
  host: string
  /** The port; 0 selects a free one. */
  port: number
  /** Whether any client may connect, so that many connections may be opened at once. */
  isPublic?: boolean
  /** Whether other gateways listen on the public port, too. */
  isShared?: boolean
}

/**
 * Listens on all addresses, or on none.
 * @returns the listening servers, in the order of the listeners; undefined for one that is undefined
 * @throws Error when a port is in use
 */
export async function listenOnAll(all: readonly (Listener | undefined)[]): Promise<(Listening | undefined)[]> {
  const listening: (Listening | undefined)[] = []
  try {
    for (const one of all) {
      const listen = one?.isPublic === true ? listenWidely : listenOnce
      listening.push(one && (await listen(one.server, one)))
    }
  } catch (cause) {
    for (const one of all) one?.server.close()
    for (const one of listening) void one?.close()
    throw cause
  }
  return listening
}

/** Accepts nothing new, ends idle and live connections, and destroys the remaining ones after the grace period. */
export async function closeWithin(
  server: Server,
  listening: Listening | undefined,
  grace: number,
  endLive: () => void,
): Promise<void> {
  const closed = Promise.all([once(server, 'close'), listening?.close()])
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
