// The internal route with which a backup suspends the removal of a tenant's blobs. Backups call it from inside the
// container; gateways do not forward it.
import type { FastifyInstance } from 'fastify'
import { RuntimeError } from '../errors.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import type { Collector } from './collector.ts'

const path = '/internal/v1/tenants/:id/hold'
const maxSeconds = 600

export function addHoldRoutes(app: FastifyInstance, collector: Collector, tenants: () => Iterable<Tenant>): void {
  const findTenant = (tenantId: string): Tenant => {
    for (const tenant of tenants()) if (tenant.id === tenantId) return tenant
    throw new RuntimeError('NOT_FOUND', 'This runtime does not serve the tenant.')
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
      await collector.hold(findTenant(request.params.id), request.body.seconds)
      return { held: true }
    },
  )
  app.delete<{ Params: { id: string } }>(path, { config: { access: 'internal' } }, async (request) => {
    collector.release(findTenant(request.params.id))
    return { held: false }
  })
}
