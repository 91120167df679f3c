// The protocol of a write: a file exists if and only if its metadata exists (specification, FS-I1).
//
//   1  authorise; check size, type and the store's mark before any disk byte; Tx A: intent with reserved bytes
//   2  stream to disk, durably, under a fresh name
//   3  Tx B: row, event, end of the intent; COMMIT; answer
//   4  what the row pointed to before is collected afterwards
//
// After a failed Tx B whose outcome is known, the blob is taken back; when the connection broke at COMMIT the outcome is
// not known, and only the sweeper, which looks at the database, may decide.
import { randomUUID } from 'node:crypto'
import type { Readable } from 'node:stream'
import { TripError } from '../../database/one-trip.ts'
import { sql } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { BlobBackend } from '../backend/backend.ts'
import { allowsType, type Bucket } from '../buckets/bucket.ts'
import { run } from '../buckets/bucket-store.ts'
import type { Collector } from '../collector.ts'
import type { StorageFailpoint } from '../failpoints.ts'
import type { StorageLimits } from '../storage-limits.ts'
import { objectDenied, uploadDenied } from '../storage-errors.ts'
import { storeProblem } from '../store-mark.ts'
import { objectColumns, objectEvents, toObject, type StoredObject } from './object.ts'

export interface UploadDeps {
  backend: BlobBackend
  collector: Collector
  failpoint: StorageFailpoint
  limits: StorageLimits
}

export interface UploadTarget {
  tenant: Tenant
  context: RlsContext
  bucket: Bucket
  path: string
  contentType: string
  overwrite: boolean
  /** Undefined when the sender does not say. */
  declaredSize: number | undefined
  /** More than this can't come, whatever is declared. */
  atMost: number | undefined
}

export interface UploadMetadata {
  cacheControl: string
  metadata: Record<string, unknown>
}

/** Bookkeeping is the runtime's own: it is allowed to no caller by name, and to each through these statements. */
const bookkeeping: RlsContext = { role: 'service', reason: 'storage bookkeeping' }

export class Upload {
  readonly #deps: UploadDeps
  readonly #target: UploadTarget
  readonly #blobId = randomUUID()
  #limit = 0
  /** Mark of the store that the blob goes to. */
  #storeId: string | undefined
  /** There may be an intent. */
  #intended = false
  #stored: { size: number; sha256: string } | undefined

  constructor(deps: UploadDeps, target: UploadTarget) {
    this.#deps = deps
    this.#target = target
  }

  /** @throws RuntimeError ACCESS_DENIED, FILE_TOO_LARGE, MIME_NOT_ALLOWED, KeyAlreadyExists, QUOTA_EXCEEDED, STORAGE_UNAVAILABLE before any byte is taken */
  async begin(): Promise<void> {
    this.#deps.collector.expect(this.#target.tenant)
    const { tenant, bucket, contentType, declaredSize } = this.#target
    const limit = this.#sizeLimit()
    if (declaredSize !== undefined && declaredSize > limit) throw new RuntimeError('FILE_TOO_LARGE', 'The object exceeded the maximum allowed size')
    if (!allowsType(bucket.config, contentType)) throw new RuntimeError('MIME_NOT_ALLOWED', `mime type ${contentType} is not supported`)
    await this.#checkRight()
    await this.#deps.failpoint('upload.before-intent')
    let reserved = await this.#reserve(limit)
    if (reserved === 'not in this store') {
      const problem = await storeProblem(this.#deps.backend, tenant)
      if (problem !== undefined) throw new RuntimeError('STORAGE_UNAVAILABLE', `nothing can be uploaded: ${problem}`)
      reserved = await this.#reserve(limit)
    }
    await this.#deps.failpoint('upload.after-intent')
    switch (reserved) {
      case 'not in this store':
        throw new RuntimeError('STORAGE_UNAVAILABLE', 'the files were replaced just now; send it again')
      case 'no room':
        throw new RuntimeError('QUOTA_EXCEEDED', `the tenant's file storage of ${tenant.limits.file_bytes ?? 0} bytes has no room for this`)
      default:
        this.#limit = Math.min(limit, reserved)
    }
  }

  /** Tx A: the intent, if the store is the database's own. @returns the reserved bytes */
  async #reserve(limit: number): Promise<number | 'no room' | 'not in this store'> {
    const { tenant, declaredSize, atMost } = this.#target
    this.#storeId = await this.#deps.backend.storeId(tenant.id)
    this.#intended = true
    const [result] = await run(tenant, bookkeeping, [
      sql(
        `with room as (select $2::bigint - file_bytes - reserved_bytes as bytes, store_id::text = $5::text as own from storage_usage for update),
         made as (insert into blob_intents (blob_id, reserved) select $1, coalesce($3::bigint, least($4::bigint, bytes)) from room
           where own and bytes >= coalesce($3::bigint, 1) returning reserved)
         select own, (select reserved from made) as reserved from room`,
        this.#blobId, tenant.limits.file_bytes ?? Number.MAX_SAFE_INTEGER, declaredSize ?? null, Math.min(limit, atMost ?? limit), this.#storeId ?? null,
      ),
    ])
    const row = result?.rows[0]
    const reserved = row?.['reserved']
    this.#intended = typeof reserved === 'number'
    if (row?.['own'] !== true) return 'not in this store'
    return typeof reserved === 'number' ? reserved : 'no room'
  }

  #sizeLimit(): number {
    const { tenant, bucket } = this.#target
    const { max_file_size: ofBucket } = bucket.config
    return ofBucket === 0 ? tenant.limits.max_upload_bytes : Math.min(ofBucket, tenant.limits.max_upload_bytes)
  }

  /** Before the bytes, as far as it can be known; the policies have the last word when the row is written. */
  async #checkRight(): Promise<void> {
    const { tenant, context, bucket, path, overwrite } = this.#target
    if (context.role === 'anon') throw new RuntimeError('UNAUTHORIZED', 'uploading needs a signed-in user')
    const owns = context.role === 'service' || bucket.ownerId === context.userId
    if (!owns && bucket.policy !== 'authenticated') throw uploadDenied(bucket.policy)
    if (owns && overwrite) return
    const [existing] = await run(tenant, context, [sql('select owner_id from storage_objects where bucket_id = $1 and path = $2', bucket.id, path)])
    const row = existing?.rows[0]
    if (row === undefined) return
    if (!overwrite) throw new RuntimeError('KeyAlreadyExists', 'The resource already exists')
    if (context.role === 'authenticated' && row['owner_id'] !== context.userId) {
      throw objectDenied('overwrite')
    }
  }

  /** Takes the bytes. @throws RuntimeError FILE_TOO_LARGE, STORAGE_FULL, STORAGE_UNAVAILABLE; nothing is left behind then */
  async write(source: Readable): Promise<void> {
    const { tenant, declaredSize } = this.#target
    try {
      this.#stored = await this.#deps.backend.put(tenant.id, this.#blobId, source, this.#limit)
      await this.#deps.failpoint('upload.after-write')
      if ((await this.#deps.backend.storeId(tenant.id)) !== this.#storeId) {
        throw new RuntimeError('STORAGE_UNAVAILABLE', 'the store was taken away during the upload; send it again')
      }
      if (declaredSize !== undefined && this.#stored.size !== declaredSize) {
        throw new RuntimeError('BAD_REQUEST', `the body has ${this.#stored.size} bytes, but ${declaredSize} were declared`)
      }
    } catch (error) {
      await this.abandon()
      throw error
    }
  }

  /** @throws RuntimeError for what the policies, the bucket's rules or another writer say now */
  async commit({ cacheControl, metadata }: UploadMetadata): Promise<StoredObject> {
    const { tenant, context, bucket, path, contentType, overwrite } = this.#target
    const stored = this.#stored
    if (stored === undefined) throw new Error('commit before write')
    const ownerId = context.role === 'authenticated' ? context.userId : null
    const replace = `on conflict (bucket_id, path) do update set blob_id = excluded.blob_id, size = excluded.size, content_type = excluded.content_type,
      etag = excluded.etag, cache_control = excluded.cache_control, metadata = excluded.metadata, updated_at = now()`
    await this.#deps.failpoint('upload.before-commit')
    try {
      const [result] = await run(tenant, context, [
        sql(
          // The intent must still be there: once the sweeper took it, the blob may be gone as well.
          `with intent as (delete from blob_intents where blob_id = $1 returning blob_id),
           o as (insert into storage_objects as o (bucket_id, path, blob_id, size, content_type, etag, cache_control, metadata, owner_id)
             select $2, $3, intent.blob_id, $4, $5, $6, $7, $8::jsonb, $9 from intent
             ${overwrite ? replace : ''} returning ${objectColumns}),
           told as (${objectEvents('storage.object.created', 'o', '$10::text')})
           select * from o`,
          this.#blobId, bucket.id, path, stored.size, contentType, stored.sha256, cacheControl, JSON.stringify(metadata), ownerId, bucket.name,
        ),
      ])
      await this.#deps.failpoint('upload.after-commit')
      const row = result?.rows[0]
      if (row === undefined) throw new RuntimeError('STORAGE_UNAVAILABLE', 'the upload took so long that it was given up; send it again')
      this.#deps.collector.wake(tenant)
      return toObject(row)
    } catch (error) {
      if (isDecided(error)) await this.abandon()
      throw error
    }
  }

  /** Gives the reserved bytes back and removes the blob. Failing at it is no harm: the sweeper does the same. */
  async abandon(): Promise<void> {
    if (!this.#intended) return
    const { tenant } = this.#target
    try {
      await run(tenant, bookkeeping, [
        sql('delete from blob_intents where blob_id = $1', this.#blobId),
        sql('insert into blob_gc (blob_id) select $1 where not exists (select from storage_objects where blob_id = $1) on conflict do nothing', this.#blobId),
      ])
      this.#deps.collector.wake(tenant)
    } catch {
      // Left to the sweeper.
    }
  }
}

/** True when Postgres itself refused, so that nothing of the transaction happened. */
function isDecided(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof TripError && cause.reusable
}
