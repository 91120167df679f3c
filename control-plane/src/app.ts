// The operators' API as a Fastify application. It opens no sockets and reads neither the environment nor a clock.
import type { InternalToken } from '@tenantry/contract'
import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { LogController, type FastifyBaseLogger, type FastifyPluginAsync, type FastifyReply } from 'fastify'
import { addAccess, addKeyRoutes, type KeyRoutesDeps } from './keys/index.ts'
import { addErrorHandler, errorBody, toControlError } from './http/error-handler.ts'
import {
  addAdjustmentRoutes,
  type AdjustmentRoutesDeps,
  addInvoiceRoutes,
  type InvoiceRoutesDeps,
} from './billing/index.ts'
import { addAuditRoutes, type AuditRoutesDeps } from './audit/index.ts'
import { addBackupRoutes, type BackupRoutesDeps } from './backups/index.ts'
import { addBlockedAddressRoutes, type BlockedAddressRoutesDeps } from './blocked-addresses/index.ts'
import { addCertificateRoutes, type CertificateRoutesDeps } from './certificates/index.ts'
import { addDriftRoutes, type DriftRoutesDeps } from './drift/index.ts'
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
import { addRolloutRoutes, type RolloutRoutesDeps } from './rollouts/index.ts'
import { addSessionRoutes, type SessionRoutesDeps } from './sessions/index.ts'
import { addTenantLogs, type LogRoutesDeps } from './logs/index.ts'
import { addWebhookRoutes, type WebhookRoutesDeps } from './webhooks/index.ts'
import { addTenantUsage, type UsageRoutesDeps, addUsageSources, type UsageSourcesDeps } from './usage/index.ts'

/** Dependencies of all routes. */
type RouteDeps = AdjustmentRoutesDeps &
  AuditRoutesDeps &
  BackupRoutesDeps &
  BlockedAddressRoutesDeps &
  CertificateRoutesDeps &
  ChangeTenantDeps &
  CreateTenantDeps &
  DriftRoutesDeps &
  HealthRoutesDeps &
  InvoiceRoutesDeps &
  JwksDeps &
  KeyRoutesDeps &
  LogRoutesDeps &
  OperationRoutesDeps &
  PlanRoutesDeps &
  ReadTenantsDeps &
  RotateDeps &
  RolloutRoutesDeps &
  RunTenantDeps &
  SessionRoutesDeps &
  SuperuserPasswordRoutesDeps &
  SwitchoverDeps &
  UsageRoutesDeps &
  UsageSourcesDeps &
  WebhookRoutesDeps

/** Dependencies of the application. */
export type AppDeps = RouteDeps & {
  internalToken: InternalToken
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
  addAccess(app, { keys: deps.keys, internalToken: deps.internalToken, now: deps.now, publicPrefix: docsPath })
  app.addHook('onSend', async (_request, reply) => {
    reply.header('x-content-type-options', 'nosniff')
    if (!reply.hasHeader('cache-control')) reply.header('cache-control', 'no-store')
  })

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
  addHealthRoutes(app, deps)
  addDriftRoutes(app, deps)
  addCreateTenant(app, deps)
  addReadTenants(app, deps)
  addChangeTenant(app, deps)
  addRotateTenant(app, deps)
  addJwksRoutes(app, deps)
  addRunTenant(app, deps)
  addSwitchover(app, deps)
  addTenantLogs(app, deps)
  addSessionRoutes(app, deps)
  addTenantUsage(app, deps)
  addUsageSources(app, deps)
  addInvoiceRoutes(app, deps)
  addAdjustmentRoutes(app, deps)
  addOperationRoutes(app, deps)
  addPlanRoutes(app, deps)
  addSuperuserPasswordRoutes(app, deps)
  addRolloutRoutes(app, deps)
  addBackupRoutes(app, deps)
  addKeyRoutes(app, deps)
  addWebhookRoutes(app, deps)
  addBlockedAddressRoutes(app, deps)
  addCertificateRoutes(app, deps)
  addAuditRoutes(app, deps)
  return app
}
