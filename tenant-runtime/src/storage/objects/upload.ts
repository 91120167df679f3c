// The protocol of a write: a file exists if and only if its metadata exists (specification, FS-I1).
//
//   1  authorise; check size and type before any disk byte; Tx A: intent with reserved bytes
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
import { eventTime } from '../../events/event-log.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { BlobBackend } from '../backend/backend.ts'
import { allowsType, type Bucket } from '../buckets/bucket.ts'
import { run } from '../buckets/bucket-store.ts'
import type { Collector } from '../collector.ts'
import type { StorageFailpoint } from '../failpoints.ts'
import { objectColumns, toObject, type StoredObject } from './object.ts'

export interface UploadDeps {
  backend: BlobBackend
  collector: Collector
  failpoint: StorageFailpoint
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
  #stored: { size: number; sha256: string } | undefined

  constructor(deps: UploadDeps, target: UploadTarget) {
    this.#deps = deps
    this.#target = target
  }

  /** @throws RuntimeError ACCESS_DENIED, FILE_TOO_LARGE, MIME_NOT_ALLOWED, KeyAlreadyExists, QUOTA_EXCEEDED before any byte is taken */
  async begin(): Promise<void> {
    this.#deps.collector.expect(this.#target.tenant)
    const { tenant, bucket, contentType, declaredSize, atMost } = this.#target
    const limit = this.#sizeLimit()
    if (declaredSize !== undefined && declaredSize > limit) throw new RuntimeError('FILE_TOO_LARGE', 'The object exceeded the maximum allowed size')
    if (!allowsType(bucket.config, contentType)) throw new RuntimeError('MIME_NOT_ALLOWED', `mime type ${contentType} is not supported`)
    await this.#checkRight()
    const quota = tenant.limits.file_bytes
    await this.#deps.failpoint('upload.before-intent')
    const [intent] = await run(tenant, bookkeeping, [
      sql(
        `with room as (select $2::bigint - file_bytes - reserved_bytes as bytes from storage_usage for update)
         insert into blob_intents (blob_id, reserved) select $1, coalesce($3::bigint, least($4::bigint, bytes)) from room
         where bytes >= coalesce($3::bigint, 1) returning reserved`,
        this.#blobId, quota ?? Number.MAX_SAFE_INTEGER, declaredSize ?? null, Math.min(limit, atMost ?? limit),
      ),
    ])
    await this.#deps.failpoint('upload.after-intent')
    const reserved = intent?.rows[0]?.['reserved']
    if (typeof reserved !== 'number') {
      throw new RuntimeError('QUOTA_EXCEEDED', `the tenant's file storage of ${quota ?? 0} bytes has no room for this`)
    }
    this.#limit = Math.min(limit, reserved)
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
    if (!owns && bucket.policy !== 'authenticated') throw new RuntimeError('ACCESS_DENIED', 'new row violates row-level security policy: only the bucket\'s owner may write here')
    if (owns && overwrite) return
    const [existing] = await run(tenant, context, [sql('select owner_id from storage_objects where bucket_id = $1 and path = $2', bucket.id, path)])
    const row = existing?.rows[0]
    if (row === undefined) return
    if (!overwrite) throw new RuntimeError('KeyAlreadyExists', 'The resource already exists')
    if (context.role === 'authenticated' && row['owner_id'] !== context.userId) {
      throw new RuntimeError('ACCESS_DENIED', 'new row violates row-level security policy: the object belongs to another user')
    }
  }

  /** Takes the bytes. @throws RuntimeError FILE_TOO_LARGE, STORAGE_FULL; nothing is left behind then */
  async write(source: Readable): Promise<void> {
    const { tenant, declaredSize } = this.#target
    try {
      this.#stored = await this.#deps.backend.put(tenant.id, this.#blobId, source, this.#limit)
      await this.#deps.failpoint('upload.after-write')
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
           told as (insert into event_log (type, owner_id, payload)
             select 'storage.object.created', o.object_owner_id, jsonb_build_object('type', 'storage.object.created', 'bucket', $10::text, 'path', o.path,
               'owner_id', o.object_owner_id, 'timestamp', ${eventTime}) from o)
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
