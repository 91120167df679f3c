// Finds, moves and removes objects' rows in the tenant's database. Row-level security decides what a caller can read.
import { sql, type Statement } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import { eventTime } from '../../events/event-log.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Bucket } from '../buckets/bucket.ts'
import { bucketKey, lookUp, run, whereBucket } from '../buckets/bucket-store.ts'
import { bucketDenied, objectDenied } from '../storage-errors.ts'
import { objectColumns, objectEvents, toObject, type StoredObject } from './object.ts'

interface LocatedObject {
  bucketName: string
  object: StoredObject
}

/** Finds an object. @throws RuntimeError NoSuchBucket, NoSuchKey; also if the caller may not read it */
export async function findObject(
  tenant: Tenant,
  context: RlsContext,
  bucketKeyText: string,
  path: string,
): Promise<LocatedObject> {
  const { rows } = await lookUp(tenant, context, objectStatement(bucketKeyText, path))
  const [row] = rows
  if (row === undefined) throw new RuntimeError('NoSuchBucket', 'Bucket not found')
  if (row['object_id'] === null) throw new RuntimeError('NoSuchKey', 'Object not found')
  return { bucketName: String(row['bucket_name']), object: toObject(row) }
}

export function objectStatement(bucketKeyText: string, path: string): Statement {
  return sql(
    `select b.name as bucket_name, ${objectColumns} from storage_buckets b left join storage_objects o on o.bucket_id = b.id and o.path = $3
     where ${whereBucket(1)} order by b.name = $1 desc limit 1`,
    ...bucketKey(bucketKeyText),
    path,
  )
}

/**
 * Removes an object's row and writes the event in one transaction. The table's trigger lists the blob for the collector.
 * @throws RuntimeError NoSuchKey, ACCESS_DENIED
 */
export async function removeObject(tenant: Tenant, context: RlsContext, from: LocatedObject): Promise<void> {
  await changeAtPath(
    tenant,
    context,
    from,
    'delete',
    sql(
      `with gone as (delete from storage_objects where bucket_id = $1 and path = $2 returning path, owner_id as object_owner_id)
     ${objectEvents('storage.object.deleted', 'gone', '$3::text')}`,
      from.object.bucketId,
      from.object.path,
      from.bucketName,
    ),
  )
}

/**
 * Changes the object at the path of one that was found. If no row was changed, either the caller lacks the permission, or
 * the object was replaced meanwhile and the change is retried.
 * @throws RuntimeError ACCESS_DENIED, NoSuchKey
 */
async function changeAtPath(
  tenant: Tenant,
  context: RlsContext,
  found: LocatedObject,
  what: Parameters<typeof objectDenied>[0],
  change: Statement,
): Promise<void> {
  for (let { object } = found; ;) {
    const [changed] = await run(tenant, context, [change])
    if (changed?.count === 1) return
    const { object: now } = await findObject(tenant, context, object.bucketId, object.path)
    if (now.id === object.id) throw objectDenied(what)
    object = now
  }
}

/** Removes the objects that exist and that the caller may delete. Other paths are ignored. */
export async function removeObjects(
  tenant: Tenant,
  context: RlsContext,
  bucket: Bucket,
  paths: string[],
): Promise<StoredObject[]> {
  const [removed] = await run(tenant, context, [
    sql(
      // Locked in a fixed order, so that concurrent removals do not deadlock.
      `with locked as materialized (
         select id from storage_objects where bucket_id = $1 and path in (select jsonb_array_elements_text($2::jsonb))
         order by path for update),
       o as (delete from storage_objects o where o.id in (select id from locked) returning ${objectColumns}),
       events as (${objectEvents('storage.object.deleted', 'o', '$3::text')})
       select * from o order by path`,
      bucket.id,
      JSON.stringify(paths),
      bucket.name,
    ),
  ])
  return (removed?.rows ?? []).map(toObject)
}

const emptyBatch = 1_000

/** Removes all objects of a bucket, in several transactions. @returns how many were removed. @throws RuntimeError ACCESS_DENIED */
export async function emptyBucket(tenant: Tenant, context: RlsContext, bucket: Bucket): Promise<number> {
  if (context.role !== 'service' && (context.role !== 'authenticated' || context.userId !== bucket.ownerId)) {
    throw bucketDenied('empty')
  }
  let removed = 0
  for (;;) {
    const [batch] = await run(tenant, context, [
      sql(
        // The lock reads `bucket_id` again, because an object may be moved to another bucket after it was picked.
        `with picked as materialized (select id from storage_objects where bucket_id = $1 order by path limit $2),
         locked as materialized (
           select id from storage_objects where bucket_id = $1 and id in (select id from picked) order by path for update),
         gone as (delete from storage_objects where id in (select id from locked) returning 1),
         counted as (select count(*)::int as n from gone),
         events as (insert into event_log (type, owner_id, payload)
           select 'storage.bucket.emptied', $3, $4::jsonb || jsonb_build_object('removed', n, 'timestamp', ${eventTime})
           from counted where n > 0)
         select n, (select count(*)::int from picked) as picked from counted`,
        bucket.id,
        emptyBatch,
        bucket.ownerId,
        JSON.stringify({ type: 'storage.bucket.emptied', bucket: bucket.name, owner_id: bucket.ownerId }),
      ),
    ])
    removed += Number(batch?.rows[0]?.['n'] ?? 0)
    if (Number(batch?.rows[0]?.['picked'] ?? 0) < emptyBatch) return removed
  }
}

/** Moves an object's row; its blob does not change. @throws RuntimeError NoSuchKey, KeyAlreadyExists, ACCESS_DENIED */
export async function moveObject(
  tenant: Tenant,
  context: RlsContext,
  from: LocatedObject,
  to: { bucket: Bucket; path: string },
): Promise<void> {
  const { object, bucketName } = from
  const payload = { bucket: bucketName, path: object.path, to_bucket: to.bucket.name, to_path: to.path }
  await changeAtPath(
    tenant,
    context,
    from,
    'move',
    sql(
      `with moved as (
         update storage_objects set bucket_id = $3, path = $4, updated_at = now() where bucket_id = $1 and path = $2
         returning owner_id)
     insert into event_log (type, owner_id, payload)
     select 'storage.object.moved', owner_id, $5::jsonb || jsonb_build_object('owner_id', owner_id, 'timestamp', ${eventTime}) from moved`,
      object.bucketId,
      object.path,
      to.bucket.id,
      to.path,
      JSON.stringify({ type: 'storage.object.moved', ...payload }),
    ),
  )
}
