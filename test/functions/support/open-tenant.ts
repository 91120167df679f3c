// Opens a tenant without the runtime that serves it, for tests below HTTP.
import { Connections, defaultConnectionLimits } from '#tenant-runtime/database/connections.ts'
import { ScopedDatabase } from '#tenant-runtime/database/scoped-database.ts'
import type { Tenant } from '#tenant-runtime/tenancy/tenant.ts'
import { roomy, type TestTenant } from '#test/support/runtime.ts'

/** Returns the tenant as the runtime has it, with its own connections. Call `close` at the end. */
export function openTenant({ id, home, manifest }: TestTenant): { tenant: Tenant; close: () => Promise<void> } {
  const connections = new Connections({ ...defaultConnectionLimits, total: 10, perTenant: 10 })
  const database = new ScopedDatabase(connections, { tenantId: id, url: home.url, ddlUrl: home.ddl_url })
  return {
    tenant: { id, name: manifest.name, generation: 1, limits: roomy, manifest, database },
    close: () => connections.close(),
  }
}
