// Names of tenants for their invoices, also of those that are gone.
import type { Database } from './database.ts'

/** Of one that is gone: the name that an operator last gave it, as the audit log says. */
export function createTenantNames(database: Database): (tenantId: string) => Promise<string | undefined> {
  return async (tenantId) => {
    const tenant = await database.tenant.findUnique({ where: { id: tenantId }, select: { name: true } })
    if (tenant !== null) return tenant.name
    const rows = await database.$queryRaw<{ name: string }[]>`
      select detail->>'name' as name from audit_log
      where target = ${tenantId} and action in ('tenant.create', 'tenant.update') and detail->>'name' is not null
      order by seq desc limit 1`
    return rows[0]?.name
  }
}
