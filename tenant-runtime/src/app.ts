// The runtime as a Fastify application: the core's hooks around the modules' routes. No sockets, no environment.
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
  /** Called after the response to a request that may have changed data of a tenant. */
  onWrite: (tenantId: string) => void
  logger: FastifyBaseLogger
}

/** The maximum length of a URL. Filters of the REST interface can be long. */
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
    // TypeBox makes only valid schemas, and checking them would take a fifth of the start.
    ajv: {
      customOptions: {
        validateSchema: false,
        removeAdditional: false,
        coerceTypes: false,
        useDefaults: false,
        allErrors: false,
      },
    },
    // Node's own limit would end long uploads. Modules limit slow senders themselves.
    requestTimeout: 0,
    keepAliveTimeout: 75_000,
  }).withTypeProvider<TypeBoxTypeProvider>()

  // Clients send "content-type: application/json" with an empty body on DELETE. Schemas state where a body is required.
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (_request, body, done) => {
    if (body === '') {
      done(null, undefined)
      return
    }
    try {
      done(null, parseJson(String(body)))
    } catch (error) {
      done(error instanceof Error ? error : new SyntaxError('The JSON is not valid.'))
    }
  })

  addErrorHandler(app)
  addTenantScope(app, { internalToken, authenticator, tenantOf: (id) => (isTenantId(id) ? tenantOf(id) : undefined) })
  addCors(app)
  addTenantHealth(app, { modules, tenantOf, now })
  app.addHook('onResponse', async ({ method, tenant }: FastifyRequest) => {
    // A request that was rejected before the tenant was found has none.
    if (method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS' && (tenant as Tenant | null) !== null)
      onWrite(tenant.id)
  })
  for (const module of modules) await app.register(module.routes)
  return app
}
