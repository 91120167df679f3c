// The roles of a home whose schema does not exist: they come before a copy of it.
import { createHomeSql, homeConnectionLimits, newVerifiers, type HomeServer } from '../../homes/index.ts'
import { identifier } from '../../platform/identifiers.ts'
import type { Snapshot } from '../../reconcile/index.ts'
import { asAdmin, type SharedLocation } from './shared-server.ts'

/** Returns the passwords of a tenant's logins. */
export function passwordsOf({ secrets }: Pick<Snapshot, 'secrets'>) {
  const [[runtime = ''], [ddl = ''], [admin = '']] = [
    secrets.runtime_password,
    secrets.ddl_password,
    secrets.admin_password,
  ]
  return { runtime, ddl, admin }
}

/**
 * Prepares the database, and creates the roles of a home that is not there, but no schema: an empty home must not replace a
 * lost one.
 */
export async function createRoles(
  tenant: Pick<Snapshot, 'id' | 'secrets'>,
  { location, home }: { location: SharedLocation; home: Pick<HomeServer, 'prepare'> },
  signal: AbortSignal,
): Promise<void> {
  const { id } = tenant
  await home.prepare(() => undefined)
  await asAdmin(location, signal, async (client) => {
    const { rows } = await client.query('select 1 from pg_namespace where nspname = $1', [id])
    if (rows.length > 0) return
    const roles = createHomeSql(id, newVerifiers(passwordsOf(tenant)), homeConnectionLimits)
    await client.query(`${roles};\ndrop schema ${identifier(id)}`)
  })
}
