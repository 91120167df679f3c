// The route at which the other runtimes of the same tenants follow this one.
import { internalPaths } from '@tenantry/contract'
import type { FastifyInstance } from 'fastify'
import { WebSocketServer } from 'ws'
import { RuntimeError } from '../../errors.ts'
import { upgradeOf } from '../accept-upgrades.ts'
import type { Relay } from './relay.ts'

/** The maximum bytes of a frame of a follower, which only names tenants. */
const maxFrameBytes = 4_096

/** Adds the route. It needs the internal token, and responds 404 in a runtime without others. */
export function addRelayRoute(app: FastifyInstance, relay: Relay | undefined): void {
  const server = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload: maxFrameBytes,
  })
  app.get(internalPaths.realtimeRelay, { config: { access: 'internal' } }, async (request, reply) => {
    const upgrade = upgradeOf(request.raw)
    if (relay === undefined) throw new RuntimeError('NOT_FOUND', 'This runtime relays no messages.')
    if (upgrade === undefined) throw new RuntimeError('BAD_REQUEST', 'This path serves WebSockets only.')
    void reply.hijack()
    upgrade.take()
    server.handleUpgrade(request.raw, upgrade.socket, upgrade.head, (socket) => relay.accept(socket))
  })
}
