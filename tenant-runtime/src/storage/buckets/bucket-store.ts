// Buckets in the tenant's database. Row-level security decides what a caller can read and change.
import { databaseError } from '../../database/database-error.ts'
import { sql, type ScopedStatements, type Statement, type Value } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import { eventStatement, eventTime } from '../../events/event-log.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { bucketDenied, storageErrors } from '../storage-errors.ts'
import { bucketColumns, bucketSource, toBucket, type Bucket, type BucketConfig, type Policy } from './bucket.ts'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

interface BucketListQuery {
  search: string
  sortColumn: 'name' | 'created_at' | 'updated_at'
  sortOrder: 'asc' | 'desc'
  limit: number
  offset: number
}

/** The condition that selects a bucket by its name or its id; `bucketKey` has the values. */
export function whereBucket(parameter: number): string {
  return `(b.name = $${parameter} or b.id = $${parameter + 1}::uuid)`
}

/** Values for `whereBucket`. */
export function bucketKey(key: string): [name: string, id: string | null] {
  return [key, uuid.test(key) ? key : null]
}

/** Finds a bucket by its name or id. @throws RuntimeError NoSuchBucket, also if the caller may not read it */
export async function findBucket(tenant: Tenant, context: RlsContext, key: string): Promise<Bucket> {
  const { rows } = await lookUp(tenant, context, bucketStatement(key))
  if (rows[0] === undefined) throw new RuntimeError('NoSuchBucket', 'Bucket not found')
  return toBucket(rows[0])
}

export function bucketStatement(key: string): Statement {
  return sql(
    `select ${bucketColumns} from ${bucketSource} where ${whereBucket(1)} order by b.name = $1 desc limit 1`,
    ...bucketKey(key),
  )
}

/** Lists the caller's own and public buckets; all of them for the service role (specification, section 4.1). */
export async function listBuckets(tenant: Tenant, context: RlsContext, query: BucketListQuery): Promise<Bucket[]> {
  const userId = context.role === 'authenticated' ? context.userId : null
  const [result] = await tenant.database.readAnywhere(
    context,
    sql(
      `select ${bucketColumns} from ${bucketSource}
       where ($1 or b.policy = 'public' or b.owner_id = $2) and ($3 = '' or strpos(b.name, lower($3)) > 0)
       order by b.${query.sortColumn} ${query.sortOrder}, b.id limit $4 offset $5`,
      context.role === 'service',
      userId,
      query.search,
      query.limit,
      query.offset,
    ),
  )
  return (result?.rows ?? []).map(toBucket)
}

export async function createBucket(
  tenant: Tenant,
  context: RlsContext,
  { name, policy, config }: { name: string; policy: Policy; config: BucketConfig },
): Promise<Bucket> {
  const ownerId = context.role === 'authenticated' ? context.userId : null
  const results = await run(tenant, context, [
    sql(
      'insert into storage_buckets (name, owner_id, policy, config) values ($1, $2, $3, $4)',
      name,
      ownerId,
      policy,
      JSON.stringify(config),
    ),
    eventStatement('storage.bucket.created', ownerId, { bucket: name }),
    sql(`select ${bucketColumns} from ${bucketSource} where b.name = $1`, name),
  ])
  const row = results[2]?.rows[0]
  if (row === undefined) throw new RuntimeError('INTERNAL', 'The bucket was created, but can not be read.')
  return toBucket(row)
}

/** Changes a bucket's policy and configuration. @throws RuntimeError NoSuchBucket, ACCESS_DENIED */
export function updateBucket(
  tenant: Tenant,
  context: RlsContext,
  key: string,
  change: { policy: Policy | undefined; config: Partial<BucketConfig> },
): Promise<Bucket> {
  const set = 'policy = coalesce($4, policy), config = config || $5::jsonb'
  return changeBucket(
    tenant,
    context,
    key,
    'storage.bucket.updated',
    set,
    change.policy ?? null,
    JSON.stringify(change.config),
  )
}

/**
 * Revokes all signed URLs of the bucket, for reading and for uploading. Transfers that have begun with one continue.
 * @throws RuntimeError NoSuchBucket, ACCESS_DENIED
 */
export function revokeSignedUrls(tenant: Tenant, context: RlsContext, key: string): Promise<Bucket> {
  return changeBucket(tenant, context, key, 'storage.bucket.urls_revoked', 'signing_version = signing_version + 1')
}

/** Updates a bucket and writes an event. `values` are the parameters of `set` from $4 on. */
async function changeBucket(
  tenant: Tenant,
  context: RlsContext,
  key: string,
  event: string,
  set: string,
  ...values: Value[]
): Promise<Bucket> {
  const bucket = await findBucket(tenant, context, key)
  const results = await run(tenant, context, [
    sql(
      `with changed as (update storage_buckets set ${set}, updated_at = now() where id = $1 returning owner_id)
       insert into event_log (type, owner_id, payload)
       select $2::text, owner_id, $3::jsonb || jsonb_build_object('owner_id', owner_id, 'timestamp', ${eventTime}) from changed`,
      bucket.id,
      event,
      JSON.stringify({ type: event, bucket: bucket.name }),
      ...values,
    ),
    sql(`select ${bucketColumns} from ${bucketSource} where b.id = $1`, bucket.id),
  ])
  if (results[0]?.count !== 1) throw await whyNot(tenant, context, bucket, 'change')
  const row = results[1]?.rows[0]
  if (row === undefined) throw new RuntimeError('NoSuchBucket', 'Bucket not found')
  return toBucket(row)
}

/** Deletes an empty bucket. @throws RuntimeError NoSuchBucket, ACCESS_DENIED, BUCKET_NOT_EMPTY */
export async function deleteBucket(tenant: Tenant, context: RlsContext, key: string): Promise<void> {
  const bucket = await findBucket(tenant, context, key)
  // Locked before its objects are counted: an upload that commits first is counted, a later one finds no bucket.
  const [, ...results] = await run(tenant, context, [
    // The same lock order as that of changes of objects (migrations/007_counters_by_statement.sql).
    sql('select 1 from storage_usage for update'),
    sql('select 1 from storage_buckets where id = $1 for update', bucket.id),
    sql(
      'delete from storage_buckets b where b.id = $1 and not exists (select from storage_objects where bucket_id = b.id)',
      bucket.id,
    ),
    sql('select file_count from storage_bucket_counters where bucket_id = $1', bucket.id),
    {
      ...sql(
        `insert into event_log (type, owner_id, payload)
           select 'storage.bucket.deleted', $1, $2::jsonb || jsonb_build_object('timestamp', ${eventTime})
           where not exists (select from storage_buckets where id = $3)`,
        bucket.ownerId,
        JSON.stringify({ type: 'storage.bucket.deleted', bucket: bucket.name, owner_id: bucket.ownerId }),
        bucket.id,
      ),
    },
  ])
  if (results[1]?.count === 1) return
  const files = Number(results[2]?.rows[0]?.['file_count'] ?? 0)
  if (files > 0 && results[0]?.count === 1) {
    throw new RuntimeError(
      'BUCKET_NOT_EMPTY',
      `The bucket is not empty: it holds ${files} ${files === 1 ? 'file' : 'files'}.`,
    )
  }
  throw await whyNot(tenant, context, bucket, 'delete')
}

/** The error for a bucket that was found but not changed: it was deleted meanwhile, or the caller lacks the permission. */
async function whyNot(
  tenant: Tenant,
  context: RlsContext,
  { id, name }: Bucket,
  what: 'change' | 'delete',
): Promise<RuntimeError> {
  const now = await findBucket(tenant, context, name)
  return now.id === id ? bucketDenied(what) : new RuntimeError('NoSuchBucket', 'Bucket not found')
}

export async function run(tenant: Tenant, context: RlsContext, statements: Statement[]) {
  return runTogether(tenant, [{ context, statements }])
}

/** Runs statements that change nothing. */
export async function read(tenant: Tenant, context: RlsContext, statements: Statement[]) {
  return mapped(tenant.database.readAnywhere(context, ...statements))
}

/** Runs one quick reading statement, which may share its round trip with those of other callers. */
export async function lookUp(tenant: Tenant, context: RlsContext, statement: Statement) {
  return mapped(tenant.database.lookUpAnywhere(context, statement))
}

/** Runs several callers' statements in one transaction. */
export async function runTogether(tenant: Tenant, parts: readonly ScopedStatements[]) {
  return mapped(tenant.database.runTogether(parts))
}

async function mapped<T>(results: Promise<T>): Promise<T> {
  try {
    return await results
  } catch (error) {
    throw databaseError(error, storageErrors)
  }
}
