// Realtime channels as a module of the runtime: broadcasts, presence, and changes of records, for clients of Supabase's
// protocol (docs/realtime.md).
import { setTimeout as sleep } from 'node:timers/promises'
import type { FastifyRequest } from 'fastify'
import { WebSocketServer, type WebSocket } from 'ws'
import type { Bounds } from '../bounds/index.ts'
import { RuntimeError } from '../errors.ts'
import { clientAddress } from '../http/client-address.ts'
import { HourlyRetention } from '../tenancy/hourly-retention.ts'
import type { RuntimeModule } from '../tenancy/runtime-module.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { acceptUpgrades, upgradeOf, webSocketPath, type Upgrade } from './accept-upgrades.ts'
import { addBroadcastRoutes } from './broadcast-routes.ts'
import { CompressedConnections, compressionOptions } from './compression.ts'
import { addRelayRoute } from './relay/relay-route.ts'
import { authenticateCaller } from './channels/callers.ts'
import type { Caller } from './channels/channel.ts'
import { Connection } from './channels/connection.ts'
import { limitsOf } from './channels/limits.ts'
import { closings, unservedClosing } from './protocol/reasons.ts'
import { TenantRates } from './channels/tenant-rates.ts'
import { TenantHub, type HubConnection, type HubDeps } from './channels/tenant-hub.ts'
import { trimMessages } from './messages/stored-messages.ts'
import { versions, type Version } from './protocol/frame.ts'
import { watchUnfinishedMessages } from './unfinished-messages.ts'

interface RealtimeModuleOptions extends HubDeps {
  bounds: Bounds
  /** Whether messages may be compressed. */
  compresses: boolean
}

export interface RealtimeModule extends RuntimeModule {
  /** Notifies the module that the tenant's data may have changed. */
  notify(tenantId: string): void
  readonly retention: HourlyRetention
}

const sweepMs = 1_000
/** The time over which a stop closes connections, so that their clients do not come back all at once. */
const stopMs = 8_000
/** The number of connections that a stop closes at once. */
const closedAtOnce = 50
/** The maximum bytes of a frame. Frames above the plan's limit get an error, much larger ones end the connection. */
const frameBytes = (payloadBytes: number) => Math.max(4 * payloadBytes, 64 * 1024)
const maxFrameBytes = 4 * 1024 * 1024

export function createRealtimeModule({ bounds, compresses, ...deps }: RealtimeModuleOptions): RealtimeModule {
  const hubs = new Map<string, TenantHub>()
  const rates = new Map<string, TenantRates>()
  const servers = new Map<string, WebSocketServer>()
  const compressed = new CompressedConnections()
  const { elapsed, onError } = deps
  const retention = new HourlyRetention({ what: 'Old realtime messages', trim: trimMessages, elapsed, onError })
  let isStopping = false

  const reportUnchecked = (cause: unknown) =>
    onError(new Error('Credentials of realtime connections could not be checked.', { cause }))
  const createHub = (tenant: Tenant): TenantHub => {
    const known = rates.get(tenant.id) ?? new TenantRates(limitsOf(tenant.limits), elapsed)
    rates.set(tenant.id, known)
    return new TenantHub(tenant, known, deps)
  }
  const hubOf = (tenant: Tenant): TenantHub => {
    // The tenant may have changed since the request arrived.
    const hub = hubs.get(tenant.id) ?? createHub(deps.tenantOf(tenant.id) ?? tenant)
    hubs.set(tenant.id, hub)
    return hub
  }
  const serverOf = (tenant: Tenant, isCompressed: boolean): WebSocketServer => {
    const maxPayload = Math.min(maxFrameBytes, frameBytes(limitsOf(tenant.limits).payloadBytes))
    const perMessageDeflate = isCompressed ? compressionOptions : false
    const key = `${maxPayload} ${isCompressed}`
    const server =
      servers.get(key) ??
      new WebSocketServer({ noServer: true, clientTracking: false, autoPong: false, perMessageDeflate, maxPayload })
    servers.set(key, server)
    return server
  }
  /** Whether the connection may have compression, which its client offers. */
  const mayCompress = ({ tenant, headers }: FastifyRequest, { socket }: Upgrade): boolean => {
    if (!compresses || headers['sec-websocket-extensions']?.includes('permessage-deflate') !== true) return false
    if (!compressed.take(tenant.id)) return false
    socket.once('close', () => compressed.release(tenant.id))
    return true
  }
  const open = (request: FastifyRequest, upgrade: Upgrade, version: Version, caller: Caller) => {
    const { tenant, headers } = request
    upgrade.take()
    const begin = (socket: WebSocket) => {
      const hub = hubOf(tenant)
      const connection = new Connection({ socket, stream: upgrade.socket, hub, version, caller })
      hub.connections.add(connection)
      if (hub.connections.size === 1) hub.start()
      // The tenant may have changed since the request arrived, and a gateway may know it later than this runtime.
      const closing = unservedClosing(deps.tenantOf(tenant.id))
      if (closing !== undefined) connection.close(closing)
      else if (hub.tenant !== tenant) connection.checkCredentials().catch(reportUnchecked)
      socket.on('close', () => {
        hub.connections.delete(connection)
        if (hub.connections.size > 0) return
        hub.stop()
        if (hubs.get(tenant.id) === hub) hubs.delete(tenant.id)
      })
      const sender = {
        tenantId: tenant.id,
        isAnonymous: caller.context.role === 'anon',
        address: clientAddress(headers),
      }
      watchUnfinishedMessages(
        socket,
        upgrade.socket,
        () => bounds.openBody(sender),
        () => connection.close(closings.tooManyBytes),
      )
    }
    serverOf(tenant, mayCompress(request, upgrade)).handleUpgrade(request.raw, upgrade.socket, upgrade.head, begin)
  }

  return {
    name: 'realtime',
    retention,
    async routes(app) {
      acceptUpgrades(app)
      addRelayRoute(app, deps.relay)
      app.get(webSocketPath, { config: { access: 'public' } }, async (request, reply) => {
        const upgrade = upgradeOf(request.raw)
        if (upgrade === undefined)
          throw new RuntimeError(
            'BAD_REQUEST',
            `${webSocketPath} serves WebSockets only. Connect with "Upgrade: websocket".`,
          )
        if (isStopping)
          throw new RuntimeError('SERVICE_BUSY', 'The service is stopping. Connect again.', { retryAfter: 1 })
        const version = readVersion(request.query)
        const caller = await authenticateCaller(deps.authenticator, request.tenant, readKey(request))
        void reply.hijack()
        open(request, upgrade, version, caller)
      })
      addBroadcastRoutes(app, {
        authenticator: deps.authenticator,
        hubOf,
        send: (tenant, topic, isPrivate, broadcast) => hubOf(tenant).broadcast(topic, isPrivate, broadcast),
      })
    },
    notify: (tenantId) => hubs.get(tenantId)?.notify(),
    start: async () => undefined,
    async run(signal) {
      const relaying = new AbortController()
      const relayed = deps.relay?.run(relaying.signal)
      while (!signal.aborted) {
        await sleep(sweepMs, undefined, { signal }).catch(() => undefined)
        for (const hub of hubs.values()) {
          hub.sweep().catch(reportUnchecked)
          // A broadcast by HTTP may have created it.
          if (hub.connections.size === 0) hubs.delete(hub.tenant.id)
        }
        for (const [tenantId, { isFull }] of rates) if (isFull && !hubs.has(tenantId)) rates.delete(tenantId)
      }
      isStopping = true
      await closeAll([...hubs.values()].flatMap((hub) => [...hub.connections]))
      // The other runtimes have received the end of their presence.
      relaying.abort()
      await relayed
    },
    close: () => retention.idle(),
    health: async () => ({ status: 'healthy', observed_at: new Date(deps.now()).toISOString() }),
    usage: async () => ({}),
    evict(tenantId) {
      retention.evict(tenantId)
      hubs.get(tenantId)?.refresh().catch(reportUnchecked)
    },
    async removeData(tenantId) {
      for (const connection of [...(hubs.get(tenantId)?.connections ?? [])]) connection.close(closings.tenantGone)
    },
  }
}

/** Closes connections in groups. */
async function closeAll(connections: readonly HubConnection[]): Promise<void> {
  const groups = Math.ceil(connections.length / closedAtOnce)
  for (let group = 0; group < groups; group++) {
    for (const connection of connections.slice(group * closedAtOnce, (group + 1) * closedAtOnce))
      connection.close(closings.stopping)
    if (group < groups - 1) await sleep(stopMs / groups)
  }
}

function readVersion(query: unknown): Version {
  const { vsn = '1.0.0' } = query as { vsn?: unknown }
  const version = versions.find((known) => known === vsn)
  if (version === undefined)
    throw new RuntimeError('BAD_REQUEST', `Unknown protocol version in "vsn". Allowed: ${versions.join(', ')}.`)
  return version
}

/** Returns the key with which a client connects. Browsers cannot send it in a header. */
function readKey({ query, headers }: FastifyRequest): string {
  const { apikey = headers.apikey } = query as { apikey?: unknown }
  if (typeof apikey !== 'string' || apikey === '')
    throw new RuntimeError('UNAUTHORIZED', 'A realtime connection requires a key. Send it as "apikey" in the URL.')
  return apikey
}
