// Checks that a tenant's store belongs to its database: both have the same store ID. A database without files claims a store
// without an ID. Results are not cached, so that all runtimes that share the volume agree.
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import type { BlobBackend } from './backend/backend.ts'

const context: RlsContext = { role: 'service', reason: 'store ID' }
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * Checks the store's ID.
 * @returns what is wrong, as a sentence for the tenant; undefined if the store belongs to the database
 * @throws Error if the database or the store doesn't respond
 */
export async function storeError(backend: BlobBackend, tenant: Tenant): Promise<string | undefined> {
  const { rows } = await tenant.database.query(context, 'select store_id::text from storage_usage')
  const wanted = rows[0]?.['store_id']
  // The tenant can change the table.
  if (typeof wanted !== 'string' || !uuid.test(wanted)) return 'The database has no valid store ID.'
  const found = (await backend.storeId(tenant.id)) ?? (await claimedStore(backend, tenant, wanted))
  if (found === undefined) return 'The store that the database refers to is missing.'
  return found === wanted ? undefined : 'The files belong to another database.'
}

/** Claims the store if the database has no files. @returns the store's ID; undefined if it has none but the database has files */
async function claimedStore(backend: BlobBackend, tenant: Tenant, storeId: string): Promise<string | undefined> {
  const { rows } = await tenant.database.query(
    context,
    'select exists (select from storage_objects) or exists (select from blob_intents) as files',
  )
  if (rows[0]?.['files'] === false) return backend.claimStore(tenant.id, storeId)
  // Another runtime may have claimed it, and begun to write, since the ID was read.
  return backend.storeId(tenant.id)
}
