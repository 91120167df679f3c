// The operators' API as a Fastify application. It opens no sockets and reads neither the environment nor a clock.
import { randomUUID } from 'node:crypto'
import type { InternalToken } from '@tenantry/contract'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { LogController, type FastifyBaseLogger, type FastifyPluginAsync, type FastifyReply } from 'fastify'
import { addAccess, addKeyRoutes, type KeyRoutesDeps, type KeySubjects } from './keys/index.ts'
import { addErrorHandler, errorBody, toControlError } from './http/error-handler.ts'
import { addSecurityHeaders } from './http/security-headers.ts'
import {
  addAdjustmentRoutes,
  type AdjustmentRoutesDeps,
  addInvoiceRoutes,
  type InvoiceRoutesDeps,
  addPriceRoutes,
  type PriceRoutesDeps,
} from './billing/index.ts'
import { addAuditRoutes, type AuditRoutesDeps } from './audit/index.ts'
import { addBackupRoutes, type BackupRoutesDeps } from './backups/index.ts'
import { addBlockedAddressRoutes, type BlockedAddressRoutesDeps } from './blocked-addresses/index.ts'
import { addCertificateRoutes, type CertificateRoutesDeps } from './certificates/index.ts'
import { addConsoleFiles, type ConsoleFilesDeps } from './console/index.ts'
import {
  addConsoleSessionRoutes,
  createSessionAccess,
  type ConsoleSessionRoutesDeps,
} from './console-sessions/index.ts'
import { addChangesRoute, type ChangesRoutesDeps, addFleetRoutes, type FleetRoutesDeps } from './fleet/index.ts'
import { addDriftRoutes, type DriftRoutesDeps } from './drift/index.ts'
import { addHostRoutes, addHostStateRoutes, type HostRoutesDeps } from './hosts/index.ts'
import { addHealthRoutes, type HealthRoutesDeps } from './health/index.ts'
import {
  addOperationRoutes,
  type OperationRoutesDeps,
  addCreateTenant,
  type CreateTenantDeps,
  addReadTenants,
  type ReadTenantsDeps,
  addChangeTenant,
  type ChangeTenantDeps,
  addJwksRoutes,
  type JwksDeps,
  addRotateTenant,
  type RotateDeps,
  addRunTenant,
  addSwitchover,
  type SwitchoverDeps,
  type RunTenantDeps,
} from './tenants/index.ts'
import { addPlanRoutes, type PlanRoutesDeps } from './plans/index.ts'
import { addSuperuserPasswordRoutes, type SuperuserPasswordRoutesDeps } from './superuser-passwords/index.ts'
import { addRebalanceRoutes, type RebalanceRoutesDeps } from './rebalance/index.ts'
import { addRolloutRoutes, type RolloutRoutesDeps } from './rollouts/index.ts'
import { addSessionRoutes, type SessionRoutesDeps } from './sessions/index.ts'
import { addSpendingRoutes, type SpendingRoutesDeps } from './spending/index.ts'
import { addMoveRoutes, type MoveRoutesDeps } from './moves/index.ts'
import { addTenantLogs, type LogRoutesDeps } from './logs/index.ts'
import { addWebhookRoutes, type WebhookRoutesDeps } from './webhooks/index.ts'
import { addTenantUsage, type UsageRoutesDeps, addUsageSources, type UsageSourcesDeps } from './usage/index.ts'

/** Dependencies of all routes. */
type RouteDeps = AdjustmentRoutesDeps &
  AuditRoutesDeps &
  BackupRoutesDeps &
  BlockedAddressRoutesDeps &
  CertificateRoutesDeps &
  ChangesRoutesDeps &
  ChangeTenantDeps &
  ConsoleFilesDeps &
  ConsoleSessionRoutesDeps &
  CreateTenantDeps &
  DriftRoutesDeps &
  FleetRoutesDeps &
  HealthRoutesDeps &
  HostRoutesDeps &
  InvoiceRoutesDeps &
  JwksDeps &
  KeyRoutesDeps &
  LogRoutesDeps &
  MoveRoutesDeps &
  OperationRoutesDeps &
  PlanRoutesDeps &
  PriceRoutesDeps &
  ReadTenantsDeps &
  RotateDeps &
  RebalanceRoutesDeps &
  RolloutRoutesDeps &
  RunTenantDeps &
  SessionRoutesDeps &
  SpendingRoutesDeps &
  SuperuserPasswordRoutesDeps &
  SwitchoverDeps &
  UsageRoutesDeps &
  UsageSourcesDeps &
  WebhookRoutesDeps

/** Dependencies of the application. */
export type AppDeps = RouteDeps & {
  internalToken: InternalToken
  keySubjects: KeySubjects
  /** Whether an address is a proxy of the operator, which reports the address of its client in `X-Forwarded-For`. */
  isTrustedProxy: (address: string) => boolean
  logger: FastifyBaseLogger
  /** Called for each method of every route except the documentation's. */
  onRoute: ((route: { method: string; url: string }) => void) | undefined
  /** Routes for the other parts of the installation. */
  internal: FastifyPluginAsync
  /** Metrics in Prometheus' text format. */
  metrics: { contentType: string; text(): Promise<string> }
}

const docsPath = '/docs'

export async function buildApp(deps: AppDeps) {
  const app = Fastify({
    loggerInstance: deps.logger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: 64 * 1024,
    trustProxy: deps.isTrustedProxy,
    // Responses carry it, so that an operator can find the request in the log.
    genReqId: () => randomUUID(),
    routerOptions: { maxParamLength: 200 },
    // Watches and waits are long, but a slow body is not allowed.
    requestTimeout: 30_000,
    ajv: { customOptions: { removeAdditional: false, coerceTypes: false, useDefaults: false, allErrors: false } },
    forceCloseConnections: true,
    frameworkErrors: (error, _request, reply: FastifyReply) => {
      const controlError = toControlError(error)
      void reply.status(controlError.status).send(errorBody(controlError))
    },
  }).withTypeProvider<TypeBoxTypeProvider>()

  // Bodies are JSON. Fastify would also accept plain text.
  app.removeContentTypeParser('text/plain')
  addErrorHandler(app)
  const { keys, keySubjects: subjects, internalToken, now } = deps
  const sessions = createSessionAccess({ sessions: deps.consoleSessions, keys, now })
  addAccess(app, { keys, subjects, sessions, internalToken, now, publicPrefix: docsPath })
  addSecurityHeaders(app, docsPath)

  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Tenantry control plane', version: '1', description: 'Creates tenants and reports their usage.' },
      components: { securitySchemes: { platformKey: { type: 'http', scheme: 'bearer' } } },
      security: [{ platformKey: [] }],
    },
  })
  await app.register(swaggerUi, { routePrefix: docsPath })
  const { onRoute } = deps
  if (onRoute !== undefined) {
    app.addHook('onRoute', ({ method, url }) => {
      for (const one of [method].flat()) onRoute({ method: one, url })
    })
  }
  await app.register(deps.internal)

  app.get('/openapi.json', { schema: { hide: true }, config: { scopes: 'public' } }, () => app.swagger())
  app.get('/metrics', { schema: { hide: true }, config: { scopes: ['admin', 'read'] } }, async (_request, reply) =>
    reply.type(deps.metrics.contentType).send(await deps.metrics.text()),
  )
  await addConsoleFiles(app, deps)
  addConsoleSessionRoutes(app, deps)
  addFleetRoutes(app, deps)
  addChangesRoute(app, deps)
  addHealthRoutes(app, deps)
  addHostRoutes(app, deps)
  addHostStateRoutes(app, deps)
  addDriftRoutes(app, deps)
  addCreateTenant(app, deps)
  addReadTenants(app, deps)
  addChangeTenant(app, deps)
  addRotateTenant(app, deps)
  addJwksRoutes(app, deps)
  addRunTenant(app, deps)
  addSwitchover(app, deps)
  addMoveRoutes(app, deps)
  addTenantLogs(app, deps)
  addSessionRoutes(app, deps)
  addTenantUsage(app, deps)
  addUsageSources(app, deps)
  addInvoiceRoutes(app, deps)
  addAdjustmentRoutes(app, deps)
  addSpendingRoutes(app, deps)
  addOperationRoutes(app, deps)
  addPlanRoutes(app, deps)
  addPriceRoutes(app, deps)
  addSuperuserPasswordRoutes(app, deps)
  addRolloutRoutes(app, deps)
  addRebalanceRoutes(app, deps)
  addBackupRoutes(app, deps)
  addKeyRoutes(app, deps)
  addWebhookRoutes(app, deps)
  addBlockedAddressRoutes(app, deps)
  addCertificateRoutes(app, deps)
  addAuditRoutes(app, deps)
  return app
}
