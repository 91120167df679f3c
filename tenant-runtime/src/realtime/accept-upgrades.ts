// Passes requests for WebSockets through the routes and hooks of all requests, so that one is rejected as any other request.
import { ServerResponse, type IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { Socket } from 'node:net'
import { internalPaths } from '@tenantry/contract'
import type { FastifyInstance } from 'fastify'

/** A connection whose client waits for the response to its request for a WebSocket. */
export interface Upgrade {
  socket: Socket
  /** The bytes that arrived after the head of the request. */
  head: Buffer
  /** Takes the connection. Its response is the caller's. */
  take(): void
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>()

/** The path that serves WebSockets to clients. */
export const webSocketPath = '/realtime/v1/websocket'
/** All paths that serve WebSockets. Requests for any other protocol or path get normal responses. */
const paths: readonly string[] = [webSocketPath, internalPaths.realtimeRelay]

/** Whether a request is for a WebSocket of this service. For the server's `shouldUpgradeCallback`. */
export function isForWebSocket({ url = '', headers }: IncomingMessage): boolean {
  return headers.upgrade?.toLowerCase() === 'websocket' && paths.includes(url.split('?')[0] ?? '')
}

/** Returns the connection of a request for a WebSocket; undefined for another request. */
export function upgradeOf(request: IncomingMessage): Upgrade | undefined {
  return upgrades.get(request)
}

/** Lets the application respond to requests for WebSockets. */
export function acceptUpgrades(app: FastifyInstance): void {
  app.server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    if (!(socket instanceof Socket)) return
    const response = new ServerResponse(request)
    // After the response, no code reads the connection.
    response.shouldKeepAlive = false
    response.on('finish', () => socket.destroySoon())
    const fail = () => socket.destroy()
    socket.on('error', fail)
    response.assignSocket(socket)
    upgrades.set(request, {
      socket,
      head,
      take() {
        socket.off('error', fail)
        response.detachSocket(socket)
      },
    })
    app.routing(request, response)
  })
}
