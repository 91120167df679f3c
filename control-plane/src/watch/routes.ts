// Routes for the installation's other parts: the watches of gateways and runtimes, and the gateways' counters and wake calls.
import { UsagePush, internalPaths, type UsageResponse } from '@tenantry/contract'
import { ControlError } from '../platform/errors.ts'
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { WriteDeps } from '../http/idempotency.ts'
import { foundTenant, type TenantStore } from '../tenants/index.ts'
import type { UsageLedger } from '../usage/index.ts'
import type { Watcher } from './watch-hub.ts'
import { ownKindOf, type WatchKind, type Watches } from './watches.ts'

/** Maximum number of unread bytes of a watch. A slower watcher is disconnected; it reconnects and reads the whole set. */
const maxUnreadBytes = 16 * 1024 * 1024

type WatchRequest = FastifyRequest<{ Querystring: { region?: string; siblings?: string } }>

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
      (join: (watcher: Watcher, request: Pick<WatchRequest, 'ofTenant' | 'query'>) => Promise<() => unknown>) =>
      async (request: WatchRequest, reply: FastifyReply) => {
        rejectUnknown(request.query.region)
        reply.hijack()
        const { raw } = reply
        raw.writeHead(200, { 'content-type': 'application/x-ndjson', 'cache-control': 'no-store' })
        // The whole set, which comes first, may exceed the limit.
        let allowed: number | undefined
        const leave = await join((text) => {
          allowed ??= maxUnreadBytes + Buffer.byteLength(text)
          raw.write(text)
          if (raw.writableLength <= allowed) return true
          raw.destroy()
          return false
        }, request).catch(() => undefined)
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
      watch((watcher) => watches.tenants.watch('route', watcher)),
    )
    app.get(
      internalPaths.watchBlockedAddresses,
      { config: { scopes: access }, schema: { hide: true } },
      watch((watcher) => watches.addresses.watch('address', watcher)),
    )
    app.get(
      internalPaths.watchManifests,
      { config: { scopes: 'internal or tenant' }, schema: { hide: true } },
      watch((watcher, request) => watches.tenants.watch(kindOfManifests(request), watcher, request.ofTenant)),
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

function kindOfManifests({ ofTenant, query }: Pick<WatchRequest, 'ofTenant' | 'query'>): WatchKind {
  const { region, siblings } = query
  if (ofTenant !== undefined) return ownKindOf(siblings === undefined ? undefined : Number(siblings))
  return region === undefined ? 'manifest' : `manifest of ${region}`
}
