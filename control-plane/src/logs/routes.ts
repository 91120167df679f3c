// GET /v1/tenants/{id}/logs: the logs of a tenant's own services, at once or as a stream.
import type { FastifyRequest } from 'fastify'
import { Type, type Static } from 'typebox'
import { EngineError, callEngine, type Engine } from '../engines/index.ts'
import { serviceNames } from '../stacks/index.ts'
import { ControlError } from '../platform/errors.ts'
import type { Api } from '../http/api.ts'
import { engineOf, requireDedicated, type TenantStore, foundTenant } from '../tenants/index.ts'
import type { Clock } from '../platform/clock.ts'
import { followLog } from './follow-log.ts'
import { logTime } from './log-times.ts'
import { readLog } from './read-log.ts'

const defaultTail = 100
const maxTailLines = 1_000
/** The maximum number of streams. Each uses a connection to an engine. */
const maxFollowers = 64

/** Names of the services of all isolation models. */
const loggedServices = [...serviceNames('database-per-tenant'), ...serviceNames('cluster-per-tenant')]

const Query = Type.Object(
  {
    component: Type.Enum(loggedServices, { description: 'Name of the service' }),
    tail: Type.Optional(
      Type.String({
        pattern: '^[0-9]{1,4}$',
        description: `0 to ${maxTailLines} lines from the end, default ${defaultTail}`,
      }),
    ),
    since: Type.Optional(Type.String({ maxLength: 40, description: 'ISO 8601, UTC' })),
    follow: Type.Optional(Type.Enum(['true', 'false'])),
  },
  { additionalProperties: false },
)

const Lines = Type.Object({
  lines: Type.Array(Type.Object({ at: Type.String(), stream: Type.Enum(['stdout', 'stderr']), text: Type.String() })),
  truncated: Type.Boolean({ description: 'Earlier lines were left out, because all together would be too large' }),
})

/** The dependencies of the routes of logs. */
export interface LogRoutesDeps {
  tenants: Pick<TenantStore, 'get'>
  /** Returns the region's engine; undefined where the operator started the parts. */
  engineOf(region: string): Engine | undefined
  clock: Pick<Clock, 'every' | 'later' | 'sleep' | 'timeout'>
}

/**
 * Adds the route for the logs of a tenant's own services, also as server-sent events. The number of simultaneous
 * followers is bounded.
 */
export function addTenantLogs(app: Api, deps: LogRoutesDeps): void {
  let followers = 0

  app.get(
    '/v1/tenants/:id/logs',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: "Log of one of a tenant's own services",
        description:
          'With `follow=true` server-sent events `log`, each with its time as id. `Last-Event-ID` continues after that event. ' +
          'The stream ends after five minutes, and when the key or session is no longer valid.',
        tags: ['tenants'],
        params: Type.Object({ id: Type.String() }),
        querystring: Query,
        response: { 200: Lines },
      },
    },
    async (request, reply) => {
      const { component } = request.query
      const tail = tailOf(request.query)
      const since = timeOf(
        request.query.since,
        (error) => new ControlError('INVALID_PARAMETER', `Query parameter "since" ${error}.`),
      )
      const after = timeOf(
        lastEventId(request),
        (error) => new ControlError('INVALID_HEADER', `Last-Event-ID ${error}.`),
      )
      const tenant = await foundTenant(deps, request.params.id)
      requireDedicated(tenant, 'A log')
      const services = serviceNames(tenant.isolation)
      if (!services.includes(component))
        throw new ControlError(
          'INVALID_PARAMETER',
          `Query parameter "component" must be one of the tenant's services: ${services.join(', ')}.`,
        )
      const engine = engineOf(deps, tenant)
      await callEngine(deps.clock, (signal) => findService(engine, tenant.id, component, signal))
      // A response to HEAD has no body to stream.
      if (request.query.follow !== 'true' || request.method === 'HEAD') {
        const options = { follow: false, tail, ...(since === undefined ? {} : { since }) }
        return callEngine(deps.clock, (signal) => readLog(engine.logs(tenant.id, component, options, signal), tail))
      }
      if (followers >= maxFollowers)
        throw new ControlError('TOO_MANY_FOLLOWERS', `At most ${maxFollowers} logs can be followed at the same time.`)
      followers++
      reply.hijack()
      const log: Parameters<typeof followLog>[1]['log'] = (options, signal) =>
        engine.logs(tenant.id, component, options, signal)
      const checkAccess = () => request.checkAccess()
      await followLog(reply.raw, { log, tail, since, after, checkAccess }, deps.clock).finally(() => followers--)
      return reply
    },
  )
}

function tailOf({ tail }: Static<typeof Query>): number {
  const lines = tail === undefined ? defaultTail : Number(tail)
  if (lines > maxTailLines)
    throw new ControlError('INVALID_PARAMETER', `Query parameter "tail" must be from 0 to ${maxTailLines}.`)
  return lines
}

function timeOf(text: string | undefined, rejection: (error: string) => ControlError): string | undefined {
  const time = text === undefined ? undefined : logTime(text)
  if (text !== undefined && time === undefined) throw rejection('must be a time in UTC, like 2026-01-31T12:00:00.5Z')
  return time
}

function lastEventId(request: FastifyRequest): string | undefined {
  const id = request.headers['last-event-id']
  return typeof id === 'string' ? id : undefined
}

/**
 * Checks that the service has a container.
 * @throws EngineError NOT_FOUND when it has none
 */
async function findService(engine: Engine, stackId: string, component: string, signal: AbortSignal): Promise<void> {
  const { containers } = await engine.observe(stackId, signal)
  if (!containers.some(({ labels }) => labels.service === component))
    throw new EngineError('NOT_FOUND', `The tenant has no ${component} container at present.`)
}
