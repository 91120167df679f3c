// The internal call of a backup: nothing of the tenant's blobs is removed for a while. It is made from inside the
// container, and no gateway passes it on.
import type { FastifyInstance } from 'fastify'
import { RuntimeError } from '../errors.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import type { Collector } from './collector.ts'

const path = '/internal/v1/tenants/:id/hold'
const maxSeconds = 600

export function addHoldRoutes(app: FastifyInstance, collector: Collector, tenants: () => Iterable<Tenant>): void {
  const found = (tenantId: string): Tenant => {
    for (const tenant of tenants()) if (tenant.id === tenantId) return tenant
    throw new RuntimeError('NOT_FOUND', 'this runtime does not serve the tenant')
  }
  const schema = {
    body: {
      type: 'object',
      required: ['seconds'],
      additionalProperties: false,
      properties: { seconds: { type: 'integer', minimum: 1, maximum: maxSeconds } },
    },
  }
  app.put<{ Params: { id: string }; Body: { seconds: number } }>(
    path,
    { config: { access: 'internal' }, schema },
    async (request) => {
      await collector.hold(found(request.params.id), request.body.seconds)
      return { held: true }
    },
  )
  app.delete<{ Params: { id: string } }>(path, { config: { access: 'internal' } }, async (request) => {
    collector.release(found(request.params.id))
    return { held: false }
  })
}
