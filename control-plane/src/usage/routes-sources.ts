// GET /v1/usage/sources and DELETE /v1/usage/sources/{source}: the sources that count usage, and the retirement of one.
import { Type, type Static } from 'typebox'
import type { Api } from '../http/api.ts'
import type { WriteDeps } from '../http/idempotency.ts'
import { sourceKinds, type UsageSource, type UsageSources } from './store-sources.ts'
import { PageQuery, pageRequest, writeContext, NoQuery } from '../http/parameters.ts'

const Maybe = Type.Union([Type.String(), Type.Null()])
const SourceBody = Type.Object({
  source: Type.String(),
  tenant_id: Type.Union([Type.String(), Type.Null()], {
    description: 'The tenant, for the source of a home; null for a gateway, which counts for all tenants',
  }),
  complete_until: Type.String({ description: 'All counts of the hours before have arrived' }),
  first_seen_at: Type.String(),
  last_seen_at: Type.String(),
  retired_at: Maybe,
})

/** The dependencies of the routes of the sources of usage. */
export interface UsageSourcesDeps extends WriteDeps {
  usageSources: UsageSources
}

/** Adds `/v1/usage/sources`: the sources that count usage, and how far each is complete. */
export function addUsageSources(app: Api, deps: UsageSourcesDeps): void {
  app.get(
    '/v1/usage/sources',
    {
      config: { scopes: ['admin', 'read', 'billing'] },
      schema: {
        summary: 'List the sources that count usage, and how far each is complete',
        tags: ['usage'],
        querystring: Type.Object(
          { ...PageQuery, kind: Type.Optional(Type.Enum([...sourceKinds])) },
          { additionalProperties: false },
        ),
        response: { 200: Type.Object({ sources: Type.Array(SourceBody), next_cursor: Maybe }) },
      },
    },
    async (request) => {
      const page = await deps.usageSources.list(request.query.kind, pageRequest(request.query))
      return { sources: page.items.map(present), next_cursor: page.nextCursor ?? null }
    },
  )

  app.delete(
    '/v1/usage/sources/:source',
    {
      config: { scopes: ['admin'] },
      schema: {
        summary: 'Retire a source that is gone for good: hours close without it',
        tags: ['usage'],
        params: Type.Object({ source: Type.String() }),
        querystring: NoQuery,
        response: { 200: SourceBody },
      },
    },
    async (request) =>
      present(
        await deps.record(writeContext(request).actor, (write) =>
          deps.usageSources.retire(request.params.source, write),
        ),
      ),
  )
}

function present({
  source,
  tenantId,
  completeUntil,
  firstSeenAt,
  lastSeenAt,
  retiredAt,
}: UsageSource): Static<typeof SourceBody> {
  return {
    source,
    tenant_id: tenantId ?? null,
    complete_until: completeUntil.toISOString(),
    first_seen_at: firstSeenAt.toISOString(),
    last_seen_at: lastSeenAt.toISOString(),
    retired_at: retiredAt?.toISOString() ?? null,
  }
}
