// The runtime as a Fastify application: the core's hooks around the areas' routes. No sockets, no environment.
import { isTenantId, requestIdHeader } from '@tenantry/contract'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import Fastify, { LogController, type FastifyBaseLogger, type FastifyRequest } from 'fastify'
import { addCors } from './http/cors.ts'
import { addErrorHandler, rejectBadUrl } from './http/error-handler.ts'
import { addTenantHealth } from './http/tenant-health.ts'
import { addTenantScope } from './http/tenant-scope.ts'
import { parseJson } from './http/parse-json.ts'
import './http/request-scope.ts'
import type { RuntimeModule } from './tenancy/runtime-module.ts'
import type { Authenticator } from './tenancy/authenticate.ts'
import type { Tenant } from './tenancy/tenant.ts'

export interface AppDeps {
  internalToken: string
  authenticator: Authenticator
  modules: readonly RuntimeModule[]
  tenantOf: (tenantId: string) => Tenant | undefined
  now: () => Date
  /** A request that may have changed something of a tenant has been answered. */
  onWrite: (tenantId: string) => void
  logger: FastifyBaseLogger
}

/** Longest URL; filters of the REST interface can be long. */
const maxUrlBytes = 64 * 1024

export async function buildApp({ internalToken, authenticator, modules, tenantOf, now, onWrite, logger }: AppDeps) {
  const app = Fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: 1024 * 1024,
    routerOptions: { maxParamLength: 8_192 },
    requestIdHeader,
    frameworkErrors: rejectBadUrl,
    http: { maxHeaderSize: maxUrlBytes + 32 * 1024 },
    // Schemas are TypeBox's, which makes no wrong ones; to check them takes a fifth of the start.
    ajv: {
      customOptions: {
        validateSchema: false,
        removeAdditional: false,
        coerceTypes: false,
        useDefaults: false,
        allErrors: false,
      },
    },
    // Node's own limit would cut long uploads; areas watch their senders themselves.
    requestTimeout: 0,
    keepAliveTimeout: 75_000,
  }).withTypeProvider<TypeBoxTypeProvider>()

  // Clients send "content-type: application/json" with an empty body on DELETE; where a body is needed, its schema says so.
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
    if (body === '') {
      done(null, undefined)
      return
    }
    try {
      done(null, parseJson(String(body)))
    } catch (error) {
      done(error instanceof Error ? error : new SyntaxError('unreadable JSON'))
    }
  })

  addErrorHandler(app)
  addTenantScope(app, { internalToken, authenticator, tenantOf: (id) => (isTenantId(id) ? tenantOf(id) : undefined) })
  addCors(app)
  addTenantHealth(app, { modules, tenantOf, now })
  app.addHook('onResponse', async ({ method, tenant }: FastifyRequest) => {
    // A request that got no further than the door has no tenant.
    if (method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS' && (tenant as Tenant | null) !== null)
      onWrite(tenant.id)
  })
  for (const module of modules) await app.register(module.routes)
  return app
}
