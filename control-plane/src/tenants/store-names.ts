// Names of tenants, also of deleted ones, for their invoices.
import type { Database } from '../platform/database.ts'

/**
 * Creates the reader of names by tenant ID. A deleted tenant has the last name that an operator gave it, from the audit
 * log.
 */
export function createTenantNames(
  database: Database,
): (tenantIds: readonly string[]) => Promise<ReadonlyMap<string, string>> {
  return async (tenantIds) => {
    const tenants = await database.tenant.findMany({
      where: { id: { in: [...tenantIds] } },
      select: { id: true, name: true },
    })
    const names = new Map(tenants.map(({ id, name }) => [id, name]))
    const gone = tenantIds.filter((id) => !names.has(id))
    if (gone.length === 0) return names
    const rows = await database.$queryRaw<{ target: string; name: string }[]>`
      select distinct on (target) target, detail->>'name' as name from audit_log
      where target = any(${gone}) and action in ('tenant.create', 'tenant.update') and detail->>'name' is not null
      order by target, seq desc`
    for (const { target, name } of rows) names.set(target, name)
    return names
  }
}
