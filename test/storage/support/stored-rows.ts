// Reads everything that storage stores of a tenant.
import type { TestTenant } from '#test/support/runtime.ts'

/** Returns everything that storage stores of a tenant, from the database and the disk. */
export async function storedRows(tenant: TestTenant) {
  const [row] = await tenant.rows(
    `select (select count(*) from storage_objects)::int as objects, (select coalesce(sum(size), 0) from storage_objects)::int as bytes,
       (select count(*) from blob_intents)::int as intents,
       file_bytes::int, file_count::int, reserved_bytes::int as reserved from storage_usage`,
  )
  return { ...row, files: (await tenant.files()).length }
}

export const nothing = { objects: 0, bytes: 0, intents: 0, file_bytes: 0, file_count: 0, reserved: 0, files: 0 }
