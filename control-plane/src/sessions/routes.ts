// GET /v1/tenants/{id}/sessions and DELETE /v1/tenants/{id}/sessions/{pid}: the SQL sessions of a tenant.
import { Type } from 'typebox'
import { callEngine, type Engine } from '../engines/index.ts'
import { readCluster } from '../clusters/index.ts'
import type { Api } from '../http/api.ts'
import { NoQuery, writeContext } from '../http/parameters.ts'
import type { Clock } from '../platform/clock.ts'
import { ControlError } from '../platform/errors.ts'
import type { RecordWrite } from '../platform/recorded-write.ts'
import { engineOf, foundTenant, type Tenant, type TenantStore } from '../tenants/index.ts'
import { endSession, listSessions, psqlCommand, readOutput, type RunStatement } from './operator-sessions.ts'

const nullable = (description: string) => Type.Union([Type.String(), Type.Null()], { description })

const SessionBody = Type.Object({
  pid: Type.Integer(),
  login: Type.Enum(['runtime', 'ddl', 'admin', 'system'], { description: '`admin` is the login of `database_url`' }),
  client_address: nullable('Address of the client of Postgres, which may be a gateway; null for a socket'),
  application_name: Type.String(),
  state: Type.String({ description: "The state in Postgres' `pg_stat_activity`" }),
  started_at: Type.String(),
  transaction_started_at: nullable('null without a transaction'),
  statement_started_at: nullable('Begin of the current or last statement'),
  wait: nullable('What it waits for, as type and event of Postgres'),
  memory_bytes: Type.Union([Type.Number(), Type.Null()], { description: 'null if it could not be read' }),
  temporary_bytes: Type.Number(),
  locks: Type.Integer({ description: "Entries in the server's table of locks" }),
  statement: Type.Optional(nullable('Text of the current or last statement, if it was requested')),
})

/** The dependencies of the routes of SQL sessions. */
export interface SessionRoutesDeps {
  tenants: Pick<TenantStore, 'get'>
  record: RecordWrite
  /** Returns the region's engine; undefined where the operator started the parts. */
  engineOf(region: string): Engine | undefined
  /** Returns the function that runs statements on a region's shared server. */
  sharedServer(region: string): RunStatement
  clock: Pick<Clock, 'timeout'>
}

/** Adds the routes that list and end the SQL sessions of a tenant. */
export function addSessionRoutes(app: Api, deps: SessionRoutesDeps): void {
  const runFor = (tenant: Tenant): RunStatement => {
    if (tenant.isolation === 'schema-per-tenant') return deps.sharedServer(tenant.region)
    const engine = engineOf(deps, tenant)
    return async (sql) =>
      readOutput(
        await callEngine(deps.clock, async (signal) => {
          const service = await serverOf(engine, tenant, signal)
          return engine.exec(tenant.id, service, psqlCommand, { input: `${sql};`, signal })
        }),
      )
  }

  app.get(
    '/v1/tenants/:id/sessions',
    {
      config: { scopes: ['admin', 'read'] },
      schema: {
        summary: 'SQL sessions of a tenant',
        description: 'With `statements=true`, which needs the scope admin, also the texts of their statements.',
        tags: ['tenants'],
        params: Type.Object({ id: Type.String() }),
        querystring: Type.Object(
          { statements: Type.Optional(Type.Enum(['true', 'false'])) },
          { additionalProperties: false },
        ),
        response: { 200: Type.Object({ sessions: Type.Array(SessionBody) }) },
      },
    },
    async (request) => {
      const withStatements = request.query.statements === 'true'
      // Statements may contain personal data.
      if (withStatements && request.platformKey?.scope !== 'admin')
        throw new ControlError(
          'WRONG_SCOPE',
          'The query parameter "statements" needs a platform key with the scope admin.',
        )
      const tenant = await foundTenant(deps, request.params.id)
      return { sessions: await listSessions(runFor(tenant), tenant.id, withStatements) }
    },
  )

  app.delete(
    '/v1/tenants/:id/sessions/:pid',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'End an SQL session of a tenant',
        tags: ['tenants'],
        params: Type.Object({ id: Type.String(), pid: Type.String() }),
        querystring: NoQuery,
        response: { 204: Type.Null() },
      },
    },
    async (request, reply) => {
      const { actor } = writeContext(request)
      const tenant = await foundTenant(deps, request.params.id)
      const notFound = () => new ControlError('SESSION_NOT_FOUND', 'The tenant has no such session.')
      if (!/^[1-9][0-9]{0,8}$/.test(request.params.pid)) throw notFound()
      const pid = Number(request.params.pid)
      await deps.record(actor, async ({ audit }) => {
        if (!(await endSession(runFor(tenant), tenant.id, pid))) throw notFound()
        audit({ action: 'tenant.end_session', target: tenant.id, detail: { pid } })
      })
      return reply.status(204).send(null)
    },
  )
}

/** Returns the service that runs a tenant's Postgres; of a cluster, that of its primary. @throws ControlError UNAVAILABLE; EngineError */
async function serverOf(engine: Engine, { id, isolation }: Tenant, signal: AbortSignal): Promise<string> {
  if (isolation !== 'cluster-per-tenant') return 'postgres'
  const { primary } = await readCluster(engine, id, signal)
  if (primary === undefined) throw new ControlError('UNAVAILABLE', "The tenant's cluster has no primary at present.")
  return primary
}
