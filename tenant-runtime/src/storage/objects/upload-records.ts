// The two transactions of an upload (upload.ts): Tx A writes the intent, for one or many uploads; Tx B writes row and event,
// for many uploads of a tenant at once.
import { SharedRoundTrips } from '../../database/shared-round-trips.ts'
import { sql, type Statement } from '../../database/statement.ts'
import { isSameCaller, type RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { recordsContext } from '../records-context.ts'
import { run, runTogether } from '../buckets/bucket-store.ts'
import { objectColumns, objectEvents, toObject, type StoredObject } from './object.ts'
import { SpareIntents } from './spare-intents.ts'

interface Reservation {
  blobId: string
  /** Bytes; undefined if the sender does not declare them. */
  declared: number | undefined
  /** Upper bound of the size in bytes. */
  maxBytes: number
  /** The ID of the store to which the blob is written. */
  storeId: string | undefined
}

/** The reserved bytes, or why none are. */
export type Reserved = number | 'no room' | 'not in this store'

interface NewRow {
  context: RlsContext
  overwrite: boolean
  blobId: string
  /** The ID of the store that has the blob. */
  storeId: string
  bucketId: string
  bucketName: string
  path: string
  size: number
  contentType: string
  contentEncoding: string | null
  etag: string
  cacheControl: string
  metadata: Record<string, unknown>
}

/** The row was written. */
export interface Written {
  object: StoredObject
  /** Whether it replaced a row, whose blob can be collected. */
  replaced: boolean
}

/** The reason why no row was written. `abandoned` means that the collector had deleted the intent. */
export type NotWritten = 'no room' | 'not in this store' | 'abandoned'

interface TenantRecords {
  tenant: Tenant
  intents: SpareIntents
  /** Blobs of the small uploads that are running. */
  uploading: Set<string>
  records: SharedRoundTrips<NewRow, Written | NotWritten>
}

/** Records the uploads of tenants in their homes. */
export type UploadRecords = ReturnType<typeof uploadRecords>

export function uploadRecords(freshBlobId: () => string) {
  const known = new Map<string, TenantRecords>()
  const recordsOf = (tenant: Tenant) => {
    let records = known.get(tenant.id)
    if (records?.tenant !== tenant) {
      void records?.intents.release()
      const uploading = new Set<string>()
      const inProgress = () => uploading.size
      records = {
        tenant,
        uploading,
        intents: new SpareIntents(tenant, freshBlobId, inProgress),
        records: new SharedRoundTrips((rows) => record(tenant, rows), inProgress),
      }
      known.set(tenant.id, records)
    }
    return records
  }
  return {
    /** Tx A of a small body, whose quota only Tx B checks. @returns a new blob name with an intent */
    async intend(tenant: Tenant): Promise<string> {
      const { intents, uploading } = recordsOf(tenant)
      const blobId = await intents.take()
      uploading.add(blobId)
      return blobId
    },
    /** Tx A: writes the intent with its reserved bytes if the store belongs to the database. */
    reserve,
    /** Returns the bytes that files take and that running uploads have reserved. */
    async used(tenant: Tenant): Promise<number> {
      const [result] = await run(tenant, recordsContext, [
        sql('select file_bytes + reserved_bytes as used from storage_usage'),
      ])
      return Number(result?.rows[0]?.['used'] ?? 0)
    },
    /** Tx B, as the caller: writes row and event and deletes the intent. */
    async record(tenant: Tenant, row: NewRow): Promise<Written | NotWritten> {
      const { records, uploading } = recordsOf(tenant)
      try {
        return await records.run(row)
      } finally {
        uploading.delete(row.blobId)
      }
    },
    /** Deletes the intents that were created in advance, of one tenant or of all. */
    async release(tenantId?: string): Promise<void> {
      const released = [...known.values()].filter(({ tenant }) => tenantId === undefined || tenant.id === tenantId)
      await Promise.all(released.map(({ intents }) => intents.release()))
      if (tenantId !== undefined) known.delete(tenantId)
    },
    /** Cancels an upload before Tx B: removes the blob, then deletes the intent. */
    async abandon(tenant: Tenant, blobId: string, remove: () => Promise<void>): Promise<void> {
      recordsOf(tenant).uploading.delete(blobId)
      await remove()
      await run(tenant, recordsContext, [sql('delete from blob_intents where blob_id = $1', blobId)])
    },
  }
}

async function reserve(tenant: Tenant, { blobId, declared, maxBytes, storeId }: Reservation): Promise<Reserved> {
  const [result] = await run(tenant, recordsContext, [
    sql(
      // For an unknown size, all free bytes are reserved, up to the upper bound.
      `with room as (
         select $2::bigint - file_bytes - reserved_bytes as bytes, store_id::text = $3::text as own
         from storage_usage for update),
       made as (insert into blob_intents (blob_id, reserved)
         select $1::uuid, least(coalesce($4, $5::bigint), bytes) from room
         where own and (coalesce($4::bigint, $5) <= bytes or ($4 is null and bytes >= 1)) returning reserved)
       select own, (select reserved from made) as reserved from room`,
      blobId,
      fileBytes(tenant),
      storeId ?? null,
      declared ?? null,
      maxBytes,
    ),
  ])
  const row = result?.rows[0]
  if (row?.['own'] !== true) return 'not in this store'
  return row['reserved'] === null ? 'no room' : Number(row['reserved'])
}

function fileBytes(tenant: Tenant): number {
  return tenant.limits.file_bytes ?? Number.MAX_SAFE_INTEGER
}

async function record(tenant: Tenant, rows: NewRow[]): Promise<(Written | NotWritten)[]> {
  const parts = partsOf(rows)
  const results = await runTogether(
    tenant,
    parts.map((part) => ({ context: part.context, statements: [statement(part, fileBytes(tenant))] })),
  )
  const outcomes = new Map<string, Written | NotWritten>()
  for (const [n, part] of parts.entries()) {
    const written = results[n]?.rows ?? []
    const [first] = written
    if (first?.['fits'] !== true && first?.['own'] === true && part.rows.length > 1) {
      // Together they exceed the quota, so each is written alone while it fits, in the order of arrival.
      for (const row of part.rows) outcomes.set(row.blobId, (await record(tenant, [row]))[0] ?? 'abandoned')
      continue
    }
    const rejected = first?.['own'] !== true ? 'not in this store' : first['fits'] !== true ? 'no room' : 'abandoned'
    for (const { blobId } of part.rows) outcomes.set(blobId, rejected)
    for (const row of written) {
      if (row['blob_id'] === null) continue
      const object = toObject(row)
      outcomes.set(object.blobId, { object, replaced: row['replaced'] === true })
    }
  }
  return rows.map(({ blobId }) => outcomes.get(blobId) ?? 'abandoned')
}

interface Part {
  context: RlsContext
  overwrite: boolean
  storeId: string
  rows: NewRow[]
  paths: Set<string>
}

/** Groups rows of the same caller that one statement can write, which takes a path only once. */
function partsOf(rows: NewRow[]): Part[] {
  const parts: Part[] = []
  for (const row of rows) {
    const path = `${row.bucketId}/${row.path}`
    const part = parts.findLast(
      (part) =>
        part.overwrite === row.overwrite && part.storeId === row.storeId && isSameCaller(part.context, row.context),
    )
    if (part !== undefined && !part.paths.has(path)) {
      part.rows.push(row)
      part.paths.add(path)
    } else
      parts.push({
        context: row.context,
        overwrite: row.overwrite,
        storeId: row.storeId,
        rows: [row],
        paths: new Set([path]),
      })
  }
  return parts
}

function statement({ context, overwrite, storeId, rows }: Part, maxFileBytes: number): Statement {
  const ownerId = context.role === 'authenticated' ? context.userId : null
  const replace = `on conflict (bucket_id, path) do update set blob_id = excluded.blob_id, size = excluded.size,
    content_type = excluded.content_type, content_encoding = excluded.content_encoding, etag = excluded.etag,
    cache_control = excluded.cache_control, metadata = excluded.metadata, updated_at = now()`
  return sql(
    // Bytes that the intents reserve are not counted twice. The intent must still exist: if the collector deleted it, the blob
    // may be removed as well. Of the written rows, only those that replaced another have an `xmax`.
    `with jobs as (select * from jsonb_to_recordset($1::jsonb)
         as j (blob_id uuid, bucket_id uuid, bucket text, path text, size bigint, content_type text,
           content_encoding text, etag text, cache_control text, metadata jsonb)),
     verdict as (select store_id::text = $3::text as own,
         file_bytes + reserved_bytes + (select sum(size) from jobs)
           - (select coalesce(sum(reserved), 0) from blob_intents where blob_id in (select blob_id from jobs)) <= $4::bigint as fits
       from storage_usage for update),
     intents as (delete from blob_intents where blob_id in (select blob_id from jobs, verdict where own and fits) returning blob_id),
     o as (insert into storage_objects as o
         (bucket_id, path, blob_id, size, content_type, content_encoding, etag, cache_control, metadata, owner_id)
       select bucket_id, path, blob_id, size, content_type, content_encoding, etag, cache_control, metadata, $2
         from jobs join intents using (blob_id)
       ${overwrite ? replace : ''} returning ${objectColumns}, o.xmax <> 0 as replaced),
     events as (${objectEvents('storage.object.created', '(select o.*, jobs.bucket from o join jobs using (blob_id)) as w', 'bucket')})
     select verdict.*, o.* from verdict left join o on true`,
    JSON.stringify(
      rows.map((row) => ({
        blob_id: row.blobId,
        bucket_id: row.bucketId,
        bucket: row.bucketName,
        path: row.path,
        size: row.size,
        content_type: row.contentType,
        content_encoding: row.contentEncoding,
        etag: row.etag,
        cache_control: row.cacheControl,
        metadata: row.metadata,
      })),
    ),
    ownerId,
    storeId,
    maxFileBytes,
  )
}
