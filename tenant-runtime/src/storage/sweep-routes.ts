// The route with which the service role reports or removes the files that crashes have left in the store.
import type { FastifyInstance } from 'fastify'
import { Type, type Static } from 'typebox'
import type { Collector } from './collector.ts'

const Body = Type.Union([
  Type.Null(),
  Type.Object({ dry_run: Type.Optional(Type.Boolean()) }, { additionalProperties: false }),
])

/** @param phantoms number of the tenant's objects that were found without their file since the start */
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
      const { files, abandoned, orphans, removed, stopReason } = dry
        ? await collector.examine(tenant)
        : await collector.sweep(tenant)
      return {
        dry_run: dry,
        files,
        abandoned_uploads: abandoned,
        waiting: await collector.waiting(tenant),
        orphans,
        removed,
        phantoms: phantoms(tenant.id),
        refused: stopReason ?? null,
      }
    },
  )
}
