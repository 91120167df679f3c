// Deletes a folder with its contents, in steps of bounded transactions.
import { sql } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Bucket } from '../buckets/bucket.ts'
import { run } from '../buckets/bucket-store.ts'
import { objectDenied } from '../storage-errors.ts'
import { objectEvents } from './object.ts'

const stepRows = 1_000

/**
 * Deletes the objects in a folder that the caller may delete. Each step is a transaction with an event for each object.
 * Steps only go forward, so that the deletion ends even if others upload meanwhile.
 * @param folder a path with a slash at its end
 * @param onStep is called after each step, whose files can then be collected
 * @returns how many objects were deleted
 * @throws RuntimeError BAD_REQUEST; ACCESS_DENIED if the caller may delete none of the objects
 */
export async function removeFolder(
  tenant: Tenant,
  context: RlsContext,
  bucket: Bucket,
  folder: string,
  onStep: () => void,
): Promise<number> {
  if (!/[^/]\/$/.test(folder))
    throw new RuntimeError('BAD_REQUEST', 'Field "prefix" must be a folder: a path with a slash at its end.')
  let removed = 0
  let denied = 0
  let after = folder
  for (;;) {
    const [result] = await run(tenant, context, [
      sql(
        // All paths in the folder `f` are from `f/` to before `f0`, because `0` follows `/`.
        `with batch as materialized (
           select id, path from storage_objects where bucket_id = $1 and path > $2 and path < $3 order by path limit $4
         ), gone as (
           delete from storage_objects o using batch where o.id = batch.id returning o.path, o.owner_id as object_owner_id
         ), events as (${objectEvents('storage.object.deleted', 'gone', '$5::text')})
         select (select count(*)::int from batch) as seen, (select count(*)::int from gone) as removed,
           (select max(path) from batch) as last`,
        bucket.id,
        after,
        `${folder.slice(0, -1)}0`,
        stepRows,
        bucket.name,
      ),
    ])
    const row = result?.rows[0]
    const seen = Number(row?.['seen'] ?? 0)
    const gone = Number(row?.['removed'] ?? 0)
    removed += gone
    denied += seen - gone
    onStep()
    if (seen < stepRows) break
    after = String(row?.['last'])
  }
  if (removed === 0 && denied > 0) throw objectDenied('delete')
  return removed
}
