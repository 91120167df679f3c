// The server for the other parts of the installation: liveness, routes and activity of this gateway, and the relay between
// the control plane and the tenants' own runtimes. Tenants' runtimes can reach it, so the token decides what a caller may
// do.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import {
  internalPaths,
  internalTokenHeader,
  isInternalToken,
  isMetricsToken,
  isTenantId,
  tenantOfToken,
  type AppliedRoute,
  type InternalToken,
} from '@tenantry/contract'
import { rejections } from '../errors.ts'
import type { Limits } from '../limits.ts'
import type { Meter } from '../meter/meter.ts'
import type { Metrics } from '../monitor/metrics.ts'
import type { Quota } from '../quota/quota.ts'
import type { Relay } from '../relay/relay.ts'
import type { RouteTable } from '../routes/route-table.ts'
import { respondInternally, rejectInternal } from './internal-response.ts'

interface InternalServerOptions {
  routes: RouteTable
  meter: Meter
  quota: Quota
  relay: Relay
  metrics: Metrics
  internalToken: InternalToken
  limits: Limits
}

/** The time limit of a request in milliseconds. No caller sends a body here. */
const requestMilliseconds = 30_000

export function createInternalServer(options: InternalServerOptions): Server {
  const { internalToken, limits } = options
  const settings = {
    headersTimeout: limits.headTimeout,
    requestTimeout: requestMilliseconds,
    connectionsCheckingInterval: Math.min(1_000, limits.headTimeout),
  }
  const server = createServer(settings, (request, response) => {
    request.resume()
    if (request.url === internalPaths.live && request.method === 'GET') {
      respondInternally(response, 200, {
        status: 'healthy',
        routes_synced: options.routes.synced,
        quotas_synced: options.quota.isSynced,
        earlier_counts_acknowledged: options.quota.isSettled,
      })
      return
    }
    const token = request.headers[internalTokenHeader]
    if (request.url === metricsPath && isMetricsToken(internalToken, token, request.headers.authorization)) {
      if (request.method === 'GET') void respondMetrics(response, options.metrics)
      else rejectInternal(response, rejections.internalMethodNotAllowed)
    } else if (typeof token !== 'string') rejectInternal(response, rejections.internalTokenWrong)
    else if (isInternalToken(internalToken, token)) serveInstallation(request, response, options)
    else {
      const tenantId = tenantOfToken(internalToken, token)
      const watch = request.method === 'GET' ? ownWatchPath.exec(request.url ?? '')?.[0] : undefined
      const requestedTenantId = request.method === 'GET' ? ownUsagePath.exec(request.url ?? '')?.[1] : undefined
      if (tenantId !== undefined && watch !== undefined)
        void options.relay.watchManifest(tenantId, token, watch, response)
      else if (tenantId !== undefined && requestedTenantId === tenantId)
        void options.relay.requestOwnUsage(token, request.url ?? '', request.headers.accept, response)
      else rejectInternal(response, rejections.internalTokenWrong)
    }
  })
  server.maxConnections = limits.internalConnections
  return server
}

function serveInstallation(request: IncomingMessage, response: ServerResponse, options: InternalServerOptions): void {
  const { method = '', url: path = '' } = request
  const runtimeMatch = runtimePath.exec(path)
  const [, tenantId = '', module = ''] = runtimeMatch ?? []
  const allowedMethod = module === 'data' ? 'DELETE' : 'GET'
  if (method !== allowedMethod) rejectInternal(response, rejections.internalMethodNotAllowed)
  else if (runtimeMatch !== null) void options.relay.requestRuntime(tenantId, allowedMethod, path, response)
  else if (path === internalPaths.activity) respondInternally(response, 200, options.meter.activity())
  else {
    const route = path.startsWith(routePrefix) ? routeOf(path.slice(routePrefix.length), options.routes) : undefined
    if (route === undefined) rejectInternal(response, rejections.notFound)
    else
      respondInternally(response, 200, {
        ...route,
        leased: options.quota.isHeld(route.tenant_id),
      } satisfies AppliedRoute)
  }
}

/**
 * Matches the paths of a tenant's own runtime that the control plane calls: `internalPaths.tenantHealth`, `tenantUsage`,
 * `tenantRecords`, `tenantStorageState`, `tenantData`.
 */
const runtimePath = /^\/internal\/v1\/tenants\/(t_[0-9a-f]{20})\/(health|usage|books|storage|data)(?:\?hours=\d{1,3})?$/
/** Matches the path of the watch of a tenant's own runtime, which reports how many others serve the tenant with it. */
const ownWatchPath = /^\/internal\/v1\/watch\/manifests(?:\?siblings=\d{1,4})?$/
/** Matches the path on which a tenant's own runtime requests its tenant's usage. */
const ownUsagePath = /^\/internal\/v1\/tenants\/(t_[0-9a-f]{20})\/own-usage(?:\?[\w=&%-]{0,500})?$/
const metricsPath = '/metrics'
const routePrefix = internalPaths.route('')

async function respondMetrics(response: ServerResponse, metrics: Metrics): Promise<void> {
  response.writeHead(200, { 'content-type': metrics.contentType }).end(await metrics.text())
}

function routeOf(tenantId: string, routes: RouteTable) {
  return isTenantId(tenantId) ? routes.get(tenantId) : undefined
}
