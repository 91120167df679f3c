// The two transactions of an upload (objects/upload.ts), each for many uploads of a tenant at once: the intents with their
// reserved bytes, and the rows with their events.
import { sql, type Row, type Statement } from '../../database/statement.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { run, runTogether } from '../buckets/bucket-store.ts'
import { GroupCommit } from './group-commit.ts'
import { objectColumns, objectEvents, toObject, type StoredObject } from './object.ts'

export interface Reservation {
  blobId: string
  /** Bytes; undefined when the sender does not say. */
  declared: number | undefined
  /** More can't come. */
  most: number
  /** The mark of the store that the blob goes to. */
  storeId: string | undefined
}

/** Bytes. */
export type Reserved = number | 'no room' | 'not in this store'

export interface NewRow {
  context: RlsContext
  overwrite: boolean
  blobId: string
  bucketId: string
  bucketName: string
  path: string
  size: number
  contentType: string
  etag: string
  cacheControl: string
  metadata: Record<string, unknown>
}

export interface UploadBooks {
  /** Tx A: the intent, if the store is the database's own. */
  reserve(tenant: Tenant, reservation: Reservation): Promise<Reserved>
  /** Tx B, as the caller: row, event, end of the intent. `given up` when the sweeper has ended the intent before. */
  record(tenant: Tenant, row: NewRow): Promise<StoredObject | 'given up'>
}

/** Bookkeeping is the runtime's own: it is allowed to no caller by name, and to each through these statements. */
export const bookkeeping: RlsContext = { role: 'service', reason: 'storage bookkeeping' }

export function uploadBooks(): UploadBooks {
  const reservations = new GroupCommit<Reservation, Reserved>(reserve)
  const records = new GroupCommit<NewRow, StoredObject | 'given up'>(record)
  return {
    reserve: (tenant, reservation) => reservations.run(tenant, reservation),
    record: (tenant, row) => records.run(tenant, row),
  }
}

async function reserve(tenant: Tenant, jobs: Reservation[]): Promise<Reserved[]> {
  const storeId = jobs[0]?.storeId
  if (jobs.some((job) => job.storeId !== storeId)) return oneByOne(tenant, jobs)
  const [result] = await run(tenant, bookkeeping, [
    sql(
      // All of them, or of several none. One alone may have less than it could need.
      `with room as (select $2::bigint - file_bytes - reserved_bytes as bytes, store_id::text = $3::text as own from storage_usage for update),
       jobs as (select blob_id, declared, most, count(*) over () as n from jsonb_to_recordset($1::jsonb) as j (blob_id uuid, declared bigint, most bigint)),
       wanted as (select sum(coalesce(declared, most)) as bytes from jobs),
       made as (insert into blob_intents (blob_id, reserved)
         select blob_id, case when wanted.bytes <= room.bytes then coalesce(declared, most) else room.bytes end from jobs, room, wanted
         where own and (wanted.bytes <= room.bytes or (n = 1 and declared is null and room.bytes >= 1)) returning blob_id, reserved)
       select own, (select jsonb_object_agg(blob_id, reserved) from made) as reserved from room`,
      JSON.stringify(jobs.map(({ blobId, declared, most }) => ({ blob_id: blobId, declared: declared ?? null, most }))),
      tenant.limits.file_bytes ?? Number.MAX_SAFE_INTEGER, storeId ?? null,
    ),
  ])
  const row = result?.rows[0]
  if (row?.['own'] !== true) return jobs.map(() => 'not in this store')
  const made = row['reserved'] as Record<string, number> | null
  if (made === null && jobs.length > 1) return oneByOne(tenant, jobs)
  return jobs.map(({ blobId }) => made?.[blobId] ?? 'no room')
}

/** Where the room ends each has what is left of it, in the order they came. */
async function oneByOne(tenant: Tenant, jobs: Reservation[]): Promise<Reserved[]> {
  const each: Reserved[] = []
  for (const job of jobs) each.push(...(await reserve(tenant, [job])))
  return each
}

async function record(tenant: Tenant, rows: NewRow[]): Promise<(StoredObject | 'given up')[]> {
  const parts = partsOf(rows)
  const results = await runTogether(tenant, parts.map((part) => ({ context: part.context, statements: [statement(part)] })))
  const made = new Map<string, Row>()
  for (const row of results.flatMap((result) => result.rows)) made.set(String(row['blob_id']), row)
  return rows.map(({ blobId }) => {
    const row = made.get(blobId)
    return row === undefined ? 'given up' : toObject(row)
  })
}

interface Part {
  context: RlsContext
  overwrite: boolean
  rows: NewRow[]
  paths: Set<string>
}

/** Rows of one caller that one statement can write: it takes a path only once. */
function partsOf(rows: NewRow[]): Part[] {
  const parts: Part[] = []
  for (const row of rows) {
    const path = `${row.bucketId}/${row.path}`
    const part = parts.findLast(({ context, overwrite }) => overwrite === row.overwrite && isSameCaller(context, row.context))
    if (part !== undefined && !part.paths.has(path)) {
      part.rows.push(row)
      part.paths.add(path)
    } else parts.push({ context: row.context, overwrite: row.overwrite, rows: [row], paths: new Set([path]) })
  }
  return parts
}

function isSameCaller(one: RlsContext, other: RlsContext): boolean {
  if (one.role !== 'authenticated' || other.role !== 'authenticated') return one.role === other.role
  return one.userId === other.userId && one.claims === other.claims
}

function statement({ context, overwrite, rows }: Part): Statement {
  const ownerId = context.role === 'authenticated' ? context.userId : null
  const replace = `on conflict (bucket_id, path) do update set blob_id = excluded.blob_id, size = excluded.size, content_type = excluded.content_type,
    etag = excluded.etag, cache_control = excluded.cache_control, metadata = excluded.metadata, updated_at = now()`
  return sql(
    // The intent must still be there: once the sweeper took it, the blob may be gone as well.
    `with jobs as (select * from jsonb_to_recordset($1::jsonb)
         as j (blob_id uuid, bucket_id uuid, bucket text, path text, size bigint, content_type text, etag text, cache_control text, metadata jsonb)),
     intents as (delete from blob_intents where blob_id in (select blob_id from jobs) returning blob_id),
     o as (insert into storage_objects as o (bucket_id, path, blob_id, size, content_type, etag, cache_control, metadata, owner_id)
       select bucket_id, path, blob_id, size, content_type, etag, cache_control, metadata, $2 from jobs join intents using (blob_id)
       ${overwrite ? replace : ''} returning ${objectColumns}),
     told as (${objectEvents('storage.object.created', '(select o.*, jobs.bucket from o join jobs using (blob_id)) as written', 'bucket')})
     select * from o`,
    JSON.stringify(rows.map((row) => ({
      blob_id: row.blobId, bucket_id: row.bucketId, bucket: row.bucketName, path: row.path, size: row.size, content_type: row.contentType,
      etag: row.etag, cache_control: row.cacheControl, metadata: row.metadata,
    }))),
    ownerId,
  )
}
