// Is a tenant's store the one that its database speaks of? A database that speaks of no file yet takes a store without a
// mark for its own. Nothing of it is remembered: all runtimes that share the volume find the same.
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import type { BlobBackend } from './backend/backend.ts'

const poll: RlsContext = { role: 'service', reason: 'store mark' }
const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * @returns what is wrong, in words for the tenant; undefined when the store is the database's own
 * @throws Error when the database or the store doesn't answer
 */
export async function storeError(backend: BlobBackend, tenant: Tenant): Promise<string | undefined> {
  const { rows } = await tenant.database.query(poll, 'select store_id::text from storage_usage')
  const wanted = rows[0]?.['store_id']
  // The table is the tenant's, who may have made anything of it.
  if (typeof wanted !== 'string' || !uuid.test(wanted)) return 'the database names no store'
  const found = (await backend.storeId(tenant.id)) ?? (await claimedStore(backend, tenant, wanted))
  if (found === undefined) return 'the store that the database speaks of is gone'
  return found === wanted ? undefined : 'the files belong to another database'
}

/** @returns the mark that the store has; undefined when it has none though the database speaks of files */
async function claimedStore(backend: BlobBackend, tenant: Tenant, storeId: string): Promise<string | undefined> {
  const { rows } = await tenant.database.query(
    poll,
    'select exists (select from storage_objects) or exists (select from blob_intents) as files',
  )
  if (rows[0]?.['files'] === false) return backend.claimStore(tenant.id, storeId)
  // Another runtime may have claimed it, and begun to write, since the mark was looked for.
  return backend.storeId(tenant.id)
}
