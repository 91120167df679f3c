// Deleting a folder with all that lies in it, in steps, so that no transaction grows with it.
import { sql } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Bucket } from '../buckets/bucket.ts'
import { run } from '../buckets/bucket-store.ts'
import { objectDenied } from '../storage-errors.ts'
import { objectEvents } from './object.ts'

const step = 1_000

/**
 * Each step is a transaction of its own, with an event for each object. The walk goes forward only, so that it ends
 * although others upload meanwhile.
 * @param folder a path with a slash at its end
 * @param onStep is told of each step, because its files can be collected
 * @returns how many objects are gone, which are those that the caller may delete
 * @throws RuntimeError BAD_REQUEST, ACCESS_DENIED where the caller may delete none
 */
export async function removeFolder(
  tenant: Tenant,
  context: RlsContext,
  bucket: Bucket,
  folder: string,
  onStep: () => void,
): Promise<number> {
  if (!/[^/]\/$/.test(folder))
    throw new RuntimeError('BAD_REQUEST', 'field "prefix" must be a folder: a path with a slash at its end')
  let removed = 0
  let left = 0
  let after = folder
  for (;;) {
    const [result] = await run(tenant, context, [
      sql(
        // All that is in the folder `f` lies from `f/` to before `f0`, because `0` follows `/`.
        `with batch as materialized (
           select id, path from storage_objects where bucket_id = $1 and path > $2 and path < $3 order by path limit $4
         ), gone as (
           delete from storage_objects o using batch where o.id = batch.id returning o.path, o.owner_id as object_owner_id
         ), told as (${objectEvents('storage.object.deleted', 'gone', '$5::text')})
         select (select count(*)::int from batch) as seen, (select count(*)::int from gone) as removed,
           (select max(path) from batch) as last`,
        bucket.id,
        after,
        `${folder.slice(0, -1)}0`,
        step,
        bucket.name,
      ),
    ])
    const row = result?.rows[0]
    const seen = Number(row?.['seen'] ?? 0)
    const gone = Number(row?.['removed'] ?? 0)
    removed += gone
    left += seen - gone
    onStep()
    if (seen < step) break
    after = String(row?.['last'])
  }
  if (removed === 0 && left > 0) throw objectDenied('delete')
  return removed
}
