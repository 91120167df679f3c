// GET /v1/audit and /v1/audit/verify: the actions that were recorded, and the verification of the log.
import { Type } from 'typebox'
import type { Api } from '../http/api.ts'
import type { AuditLog } from './store.ts'
import { PageQuery, pageRequest, NoQuery } from '../http/parameters.ts'

/** The dependencies of the routes of the audit log. */
export interface AuditRoutesDeps {
  audit: AuditLog
}

/** Adds the routes that read the audit log and verify its hash chain. */
export function addAuditRoutes(app: Api, deps: AuditRoutesDeps): void {
  app.get(
    '/v1/audit',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'The audit log, newest first',
        tags: ['audit'],
        querystring: Type.Object(
          {
            limit: PageQuery.limit,
            before: Type.Optional(
              Type.String({ pattern: '^[0-9]{1,15}$', description: '`seq` of the last entry of the page before' }),
            ),
          },
          { additionalProperties: false },
        ),
        response: {
          200: Type.Object({
            entries: Type.Array(
              Type.Object({
                seq: Type.Integer(),
                at: Type.String(),
                actor: Type.String(),
                action: Type.String(),
                target: Type.String(),
                detail: Type.Unknown(),
              }),
            ),
          }),
        },
      },
    },
    async ({ query }) => {
      const { limit } = pageRequest(query.limit === undefined ? {} : { limit: query.limit })
      const entries = await deps.audit.list(limit, query.before === undefined ? undefined : Number(query.before))
      return { entries: entries.map((entry) => ({ ...entry, at: entry.at.toISOString() })) }
    },
  )

  app.get(
    '/v1/audit/verify',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Recompute the chain of hashes',
        tags: ['audit'],
        querystring: NoQuery,
        response: {
          200: Type.Object({
            whole: Type.Boolean(),
            entries: Type.Integer(),
            broken_at: Type.Union([Type.Integer(), Type.Null()]),
          }),
        },
      },
    },
    async () => {
      const { entries, brokenAt } = await deps.audit.verify()
      return { whole: brokenAt === undefined, entries, broken_at: brokenAt ?? null }
    },
  )
}
