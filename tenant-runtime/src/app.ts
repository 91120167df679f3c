// The runtime as a Fastify application: the core's hooks around the modules' routes. No sockets, no environment.
import { isTenantId, requestIdHeader, type InternalToken } from '@tenantry/contract'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { addMetrics, type Bounds } from './bounds/index.ts'
import { BodyReader, type BodyPace } from './http/body-reader.ts'
import type { Readable } from 'node:stream'
import type { Metric } from 'prom-client'
import Fastify, { LogController, type FastifyBaseLogger, type FastifyRequest } from 'fastify'
import { addConsoleFiles, type ConsoleFiles } from './console/console-files.ts'
import { addRealtimeToken } from './console/realtime-token.ts'
import { addSessionRoutes } from './console/session-routes.ts'
import { addCors } from './http/cors.ts'
import { holdResponses } from './http/hold-responses.ts'
import { addErrorHandler, rejectBadUrl } from './http/error-handler.ts'
import { addTenantHealth } from './http/tenant-health.ts'
import { addTenantScope } from './http/tenant-scope.ts'
import { parseJson } from './http/parse-json.ts'
import './http/request-scope.ts'
import { isForWebSocket } from './realtime/accept-upgrades.ts'
import { addKeyRoutes } from './keys/key-routes.ts'
import { addSqlRoutes } from './sql/sql-routes.ts'
import type { RuntimeModule } from './tenancy/runtime-module.ts'
import type { Authenticator } from './tenancy/authenticate.ts'
import type { Tenant } from './tenancy/tenant.ts'

export interface AppDeps {
  internalToken: InternalToken
  authenticator: Authenticator
  /** Whether other runtimes serve the same tenants, so that none sees all uses of their keys. */
  hasSiblings?: boolean
  /** The developers' console; undefined serves none. */
  console?: { files: ConsoleFiles; newId: () => string }
  modules: readonly RuntimeModule[]
  tenantOf: (tenantId: string) => Tenant | undefined
  now: () => Date
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  bounds: Bounds
  /** Metrics of the modules. */
  metrics?: readonly Metric[]
  bodyPace?: BodyPace | undefined
  /** Called after the response to a request that may have changed data of a tenant. */
  onWrite: (tenantId: string) => void
  logger: FastifyBaseLogger
}

/** The maximum length of a URL. Filters of the REST interface can be long. */
const maxUrlBytes = 64 * 1024

export async function buildApp({
  internalToken,
  authenticator,
  hasSiblings = false,
  console,
  modules,
  tenantOf,
  now,
  elapsed,
  bounds,
  metrics = [],
  bodyPace,
  onWrite,
  logger,
}: AppDeps) {
  const app = Fastify({
    loggerInstance: logger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: 1024 * 1024,
    routerOptions: { maxParamLength: 8_192 },
    requestIdHeader,
    frameworkErrors: rejectBadUrl,
    http: { maxHeaderSize: maxUrlBytes + 32 * 1024, shouldUpgradeCallback: isForWebSocket },
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
    // A gateway may send a request on a connection that it has kept, before it knows that the runtime stops.
    return503OnClosing: false,
  }).withTypeProvider<TypeBoxTypeProvider>()

  const bodies = new BodyReader(bounds, elapsed, bodyPace)
  app.decorate('bodies', bodies)
  app.decorateRequest('bodyReservation', null)
  app.addHook('onClose', async () => bodies.close())
  // The handler has ended, so the body is no longer needed, even if the client has left.
  app.addHook('onSend', async ({ bodyReservation }) => bodyReservation?.release())

  // Clients send "content-type: application/json" with an empty body on DELETE. Schemas state where a body is required.
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser('application/json', async (request: FastifyRequest, payload: Readable) => {
    const { bytes, charge } = await bodies.read(request, payload)
    return bytes.length === 0 ? undefined : parseJson(bytes.toString('utf8'), charge)
  })

  addErrorHandler(app, elapsed)
  addTenantScope(app, {
    internalToken,
    authenticator,
    tenantOf: (id) => (isTenantId(id) ? tenantOf(id) : undefined),
  })
  holdResponses(app, bounds.results)
  addCors(app)
  addMetrics(app, bounds, metrics)
  if (console !== undefined) {
    addConsoleFiles(app, console.files)
    addSessionRoutes(app, { authenticator, now, newId: console.newId })
    addRealtimeToken(app, now)
  }
  addSqlRoutes(app, elapsed)
  addKeyRoutes(app, { uses: hasSiblings ? undefined : authenticator.uses, now })
  addTenantHealth(app, { modules, tenantOf, now })
  app.addHook('onResponse', async ({ method, tenant }: FastifyRequest) => {
    // A request that was rejected before the tenant was found has none.
    if (method !== 'GET' && method !== 'HEAD' && method !== 'OPTIONS' && (tenant as Tenant | null) !== null)
      onWrite(tenant.id)
  })
  for (const module of modules) await app.register(module.routes)
  return app
}
