// Routes for the installation's other parts: the watches of gateways and runtimes, and the gateways' counters and wake calls.
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import {
  isServed,
  maxRuntimes,
  UsagePush,
  internalPaths,
  type RuntimeShare,
  type UsageResponse,
} from '@tenantry/contract'
import { ControlError } from '../platform/errors.ts'
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { WriteDeps } from '../http/idempotency.ts'
import { foundTenant, type TenantStore } from '../tenants/index.ts'
import type { UsageLedger } from '../usage/index.ts'
import type { Watcher } from './watch-hub.ts'
import { ownKindOf, type WatchKind, type Watches } from './watches.ts'

/** Maximum number of unread bytes of a watch. A slower watcher is disconnected; it reconnects and reads the whole set. */
const maxUnreadBytes = 16 * 1024 * 1024

type WatchRequest = FastifyRequest<{ Querystring: WatchQuery }>

interface WatchQuery {
  /** ID of the region of a shared runtime. */
  region?: string
  /** Number of other runtimes of a tenant's own. */
  siblings?: string
  /** The share of a shared runtime: its number, and the number of runtimes. */
  runtime?: string
  runtimes?: string
}

interface InternalRoutesDeps extends WriteDeps {
  watches: Pick<Watches, 'tenants' | 'addresses' | 'regions'>
  ledger: UsageLedger
  tenants: TenantStore
  now: () => Date
}

/**
 * Creates the plugin with the routes for the installation's other parts: the watches, the push of usage and the wake
 * call.
 */
export function internalRoutes({ watches, ledger, tenants, record, now }: InternalRoutesDeps): FastifyPluginAsync {
  return async (app) => {
    const access = 'internal'
    const rejectUnknown = (region: string | undefined) => {
      if (region !== undefined && !watches.regions.includes(region))
        throw new ControlError('UNKNOWN_REGION', `Unknown region ${JSON.stringify(region.slice(0, 100))}.`)
    }
    const watch =
      (join: (connection: Connection, request: Pick<WatchRequest, 'ofTenant' | 'query'>) => Promise<() => void>) =>
      async (request: WatchRequest, reply: FastifyReply) => {
        rejectUnknown(request.query.region)
        reply.hijack()
        const { raw } = reply
        raw.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' })
        const leave = await join(connectionOf(raw), request).catch(() => undefined)
        if (leave === undefined) {
          raw.destroy()
          return
        }
        if (raw.destroyed) leave()
        raw.on('close', leave)
      }
    app.get(
      internalPaths.watchRoutes,
      { config: { scopes: access }, schema: { hide: true } },
      watch(({ watcher, drained }) => watches.tenants.watch('route', watcher, { drained })),
    )
    app.get(
      internalPaths.watchBlockedAddresses,
      { config: { scopes: access }, schema: { hide: true } },
      watch(({ watcher, drained }) => watches.addresses.watch('address', watcher, { drained })),
    )
    app.get(
      internalPaths.watchManifests,
      { config: { scopes: 'internal or tenant' }, schema: { hide: true } },
      watch(({ watcher, drained }, request) =>
        watches.tenants.watch(kindOfManifests(request), watcher, { drained, isWatched: isWatched(request) }),
      ),
    )
    app.post(
      internalPaths.usage,
      { config: { scopes: access }, schema: { hide: true, body: UsagePush }, bodyLimit: 16 * 1024 * 1024 },
      async (request) => {
        await ledger.record(request.body as UsagePush)
        return { accepted: true, now: now().toISOString() } satisfies UsageResponse
      },
    )
    app.post<{ Params: { id: string } }>(
      internalPaths.wake(':id'),
      { config: { scopes: access }, schema: { hide: true } },
      async (request, reply) => {
        const tenant = await foundTenant({ tenants }, request.params.id)
        // Many requests may wake one tenant. Only the first one has to write.
        if (tenant.desired === 'paused') await record({ keyId: 'gateway' }, (write) => tenants.wake(tenant.id, write))
        return reply.status(202).send({ accepted: true })
      },
    )
  }
}

interface Connection {
  watcher: Watcher
  /** Resolves when the client has read what was written, or is gone. */
  drained: () => Promise<void>
}

/** Returns the connection of a watch. A client that does not read is disconnected. */
function connectionOf(response: ServerResponse): Connection {
  return {
    watcher(text) {
      if (response.destroyed) return false
      response.write(text)
      if (response.writableLength <= maxUnreadBytes) return true
      response.destroy()
      return false
    },
    async drained() {
      // Other requests are served between the parts, also to a client that reads at once.
      await new Promise((resolve) => setImmediate(resolve))
      if (!response.writableNeedDrain || response.destroyed) return
      const gone = new AbortController()
      const { signal } = gone
      await Promise.race([once(response, 'drain', { signal }), once(response, 'close', { signal })]).catch(
        () => undefined,
      )
      gone.abort()
    },
  }
}

/** Returns whether a runtime receives a tenant: its own, or those of its share. A runtime of an earlier version receives all. */
function isWatched({ ofTenant, query }: Pick<WatchRequest, 'ofTenant' | 'query'>): (tenantId: string) => boolean {
  if (ofTenant !== undefined) return (id) => id === ofTenant
  const share = shareOf(query)
  return share === undefined ? () => true : (id) => isServed(id, share)
}

function shareOf({ runtime, runtimes }: WatchQuery): RuntimeShare | undefined {
  const share = { number: Number(runtime), runtimes: Number(runtimes) }
  const isShare = Number.isInteger(share.number) && share.runtimes >= 1 && share.runtimes <= maxRuntimes
  return isShare ? share : undefined
}

function kindOfManifests({ ofTenant, query }: Pick<WatchRequest, 'ofTenant' | 'query'>): WatchKind {
  const { region, siblings } = query
  if (ofTenant !== undefined) return ownKindOf(siblings === undefined ? undefined : Number(siblings))
  return region === undefined ? 'manifest' : `manifest of ${region}`
}
