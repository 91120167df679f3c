// The service role's look at what crashes may have left in the store, and its order to sweep it up now.
import type { FastifyInstance } from 'fastify'
import { Type, type Static } from 'typebox'
import type { Collector } from './collector.ts'

const Body = Type.Union([
  Type.Null(),
  Type.Object({ dry_run: Type.Optional(Type.Boolean()) }, { additionalProperties: false }),
])

/** @param phantoms objects of the tenant that were found without their file since the start */
export function addSweepRoutes(
  app: FastifyInstance,
  collector: Collector,
  phantoms: (tenantId: string) => number,
): void {
  app.post<{ Body: Static<typeof Body> | undefined }>(
    '/storage/v1/admin/sweep',
    { config: { access: 'service' }, schema: { body: Body } },
    async ({ tenant, body }) => {
      const dry = body?.dry_run ?? false
      const {
        files,
        abandoned,
        orphans,
        removed,
        refused: rejected,
      } = dry ? await collector.examine(tenant) : await collector.sweep(tenant)
      return {
        dry_run: dry,
        files,
        abandoned_uploads: abandoned,
        waiting: await collector.waiting(tenant),
        orphans,
        removed,
        phantoms: phantoms(tenant.id),
        refused: rejected ?? null,
      }
    },
  )
}
