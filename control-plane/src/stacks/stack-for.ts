// Tenant → stack. One branch an isolation model.
import type { Isolation } from '../tenants/tenant.ts'
import type { Stack } from './stack.ts'

/**
 * A schema-per-tenant home needs no services of its own: the region's shared Postgres and runtimes serve it.
 * @throws RangeError for a model that has no stack yet; the API refuses it before it gets here
 */
export function stackFor(tenant: { id: string; isolation: Isolation }): Stack {
  switch (tenant.isolation) {
    case 'schema-per-tenant':
      return { id: tenant.id, services: [] }
    case 'database-per-tenant':
    case 'cluster-per-tenant':
      throw new RangeError(`no engine runs ${tenant.isolation}`)
  }
}
