// The protocol of a write: a file exists if and only if its metadata exists (specification, FS-I1).
//
//   1  Authorise; check size, type and store ID before a byte is written. Tx A writes the intent and reserves the bytes of
//      a large body. The intent of a small body may exist in advance (spare-intents.ts); Tx B checks its quota.
//   2  Write the bytes durably under a new name.
//   3  Tx B, which other uploads of the tenant share: check rules, quota and store again; write row and event, delete the
//      intent; COMMIT; send the response.
//   4  Collect the blob that the row referred to before.
//
// If Tx B fails with a known outcome, the upload removes its blob. If the connection breaks at COMMIT, the outcome is
// unknown, and only the collector, which reads the database, may remove the blob.
import type { Readable } from 'node:stream'
import { hasNoEffect } from '../../database/shared-round-trips.ts'
import { sql } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { BlobBackend } from '../backend/backend.ts'
import { allowsType, type Bucket } from '../buckets/bucket.ts'
import { lookUp } from '../buckets/bucket-store.ts'
import type { Collector } from '../collector.ts'
import type { StorageFailpoint } from '../failpoints.ts'
import type { StorageLimits } from '../storage-limits.ts'
import { objectDenied, uploadDenied } from '../storage-errors.ts'
import { storeError } from '../store-id.ts'
import type { StoredObject } from './object.ts'
import type { NotWritten, UploadRecords } from './upload-records.ts'

export interface UploadDeps {
  backend: BlobBackend
  collector: Collector
  failpoint: StorageFailpoint
  limits: StorageLimits
  records: UploadRecords
  /** Returns a new name of a blob. Consecutive names share a directory. */
  freshBlobId: () => string
}

/** Bodies up to this size are written before their quota is checked. */
const smallBytes = 64 * 1024

interface UploadTarget {
  tenant: Tenant
  context: RlsContext
  bucket: Bucket
  path: string
  contentType: string
  overwrite: boolean
  /** Bytes; undefined if the sender does not declare them. */
  declaredSize: number | undefined
  /** Upper bound of the size in bytes, if `declaredSize` is undefined. */
  maxBytes: number | undefined
}

interface UploadMetadata {
  cacheControl: string
  contentEncoding: string | null
  metadata: Record<string, unknown>
}

/** The result of Tx A. */
interface Intent {
  blobId: string
  /** The ID of the store to which the blob is written. */
  storeId: string
  /** Maximum size in bytes. */
  limit: number
}

/** An upload that has begun. Only it uses the name of its blob, and its intent is in the database. */
export class Upload {
  readonly #deps: UploadDeps
  readonly #target: UploadTarget
  readonly #intent: Intent
  #stored: { size: number; sha256: string } | undefined

  private constructor(deps: UploadDeps, target: UploadTarget, intent: Intent) {
    this.#deps = deps
    this.#target = target
    this.#intent = intent
  }

  /**
   * Begins an upload, before any of its bytes are read.
   * @throws RuntimeError ACCESS_DENIED, FILE_TOO_LARGE, MIME_NOT_ALLOWED, KeyAlreadyExists, QUOTA_EXCEEDED,
   *   STORAGE_UNAVAILABLE
   */
  static async begin(deps: UploadDeps, target: UploadTarget): Promise<Upload> {
    deps.collector.markForSweep(target.tenant)
    const { bucket, contentType, declaredSize } = target
    const limit = sizeLimit(target)
    if (declaredSize !== undefined && declaredSize > limit)
      throw new RuntimeError('FILE_TOO_LARGE', 'The object exceeded the maximum allowed size')
    if (!allowsType(bucket.config, contentType))
      throw new RuntimeError('MIME_NOT_ALLOWED', `mime type ${contentType} is not supported`)
    await checkPermission(target)
    await deps.failpoint('upload.before-intent')
    const intent = await intend(deps, target, limit)
    await deps.failpoint('upload.after-intent')
    return new Upload(deps, target, intent)
  }

  /**
   * Writes the bytes. After an error it removes what it has written.
   * @throws RuntimeError FILE_TOO_LARGE, STORAGE_FULL, STORAGE_UNAVAILABLE, BAD_REQUEST; the source's error
   */
  async write(source: Readable): Promise<void> {
    const { tenant, declaredSize } = this.#target
    const { blobId, storeId, limit } = this.#intent
    try {
      this.#stored = await this.#deps.backend.put(tenant.id, blobId, source, limit)
      await this.#deps.failpoint('upload.after-write')
      if ((await this.#deps.backend.storeId(tenant.id)) !== storeId) throw storeReplaced()
      if (declaredSize !== undefined && this.#stored.size !== declaredSize) {
        throw new RuntimeError(
          'BAD_REQUEST',
          `The body has ${this.#stored.size} bytes, but ${declaredSize} were declared.`,
        )
      }
    } catch (error) {
      await this.abandon()
      throw error
    }
  }

  /** Writes the row. @throws RuntimeError if the policies, the bucket's rules or the quota reject it, or another upload was first */
  async commit({ cacheControl, contentEncoding, metadata }: UploadMetadata): Promise<StoredObject> {
    const { tenant, context, bucket, path, contentType, overwrite } = this.#target
    const stored = this.#stored
    if (stored === undefined) throw new Error('The bytes of the upload are not written.')
    await this.#deps.failpoint('upload.before-commit')
    try {
      const { blobId, storeId } = this.#intent
      const recorded = await this.#deps.records.record(tenant, {
        context,
        overwrite,
        blobId,
        storeId,
        bucketId: bucket.id,
        bucketName: bucket.name,
        path,
        size: stored.size,
        contentType,
        contentEncoding,
        etag: stored.sha256,
        cacheControl,
        metadata,
      })
      await this.#deps.failpoint('upload.after-commit')
      if (typeof recorded !== 'object') throw await this.#notRecorded(recorded)
      if (recorded.replaced) this.#deps.collector.wake(tenant)
      return recorded.object
    } catch (error) {
      if (hasNoEffect(error)) await this.abandon()
      throw error
    }
  }

  async #notRecorded(why: NotWritten): Promise<RuntimeError> {
    const { tenant } = this.#target
    if (why === 'abandoned') return new RuntimeError('STORAGE_UNAVAILABLE', 'The upload took too long. Retry it.')
    await this.abandon()
    if (why === 'no room') return quotaExceeded(this.#deps, tenant)
    const error = await storeError(this.#deps.backend, tenant)
    return error === undefined ? storeReplaced() : storeUnusable(error)
  }

  /** Removes the blob and releases the reserved bytes. A failure is harmless: the collector does the same. */
  async abandon(): Promise<void> {
    await abandon(this.#deps, this.#target, this.#intent.blobId)
  }
}

async function abandon({ backend, records }: UploadDeps, { tenant }: UploadTarget, blobId: string): Promise<void> {
  // After a failure, the collector removes the blob and the intent.
  await records.abandon(tenant, blobId, () => backend.remove(tenant.id, blobId)).catch(() => undefined)
}

/** Runs Tx A. @throws RuntimeError QUOTA_EXCEEDED, STORAGE_UNAVAILABLE */
async function intend(deps: UploadDeps, target: UploadTarget, limit: number): Promise<Intent> {
  const { backend, records, freshBlobId } = deps
  const { tenant, declaredSize } = target
  const maxBytes = declaredSize ?? target.maxBytes ?? limit
  let storeId = await backend.storeId(tenant.id)
  // A store without an ID may not have its directory yet.
  if (maxBytes <= smallBytes && storeId !== undefined) return { blobId: await records.intend(tenant), storeId, limit }
  const blobId = freshBlobId()
  for (let isRetry = false; ; isRetry = true) {
    const reserved = await records
      .reserve(tenant, { blobId, declared: declaredSize, maxBytes: Math.min(limit, maxBytes), storeId })
      .catch(async (error: unknown) => {
        if (!hasNoEffect(error)) await abandon(deps, target, blobId)
        throw error
      })
    if (reserved === 'no room') throw await quotaExceeded(deps, tenant)
    if (reserved !== 'not in this store' && storeId !== undefined)
      return { blobId, storeId, limit: Math.min(limit, reserved) }
    if (isRetry) throw storeReplaced()
    const violation = await storeError(backend, tenant)
    if (violation !== undefined) throw storeUnusable(violation)
    storeId = await backend.storeId(tenant.id)
  }
}

async function quotaExceeded({ records }: UploadDeps, tenant: Tenant): Promise<RuntimeError> {
  const limit = tenant.limits.file_bytes ?? 0
  const used = await records.used(tenant)
  return new RuntimeError(
    'QUOTA_EXCEEDED',
    `The upload exceeds the tenant's file storage of ${limit} bytes, of which ${used} are used.`,
    { extra: { limit, used } },
  )
}

function storeReplaced(): RuntimeError {
  return new RuntimeError('STORAGE_UNAVAILABLE', 'The store was replaced during the upload. Retry the upload.')
}

function storeUnusable(error: string): RuntimeError {
  return new RuntimeError('STORAGE_UNAVAILABLE', `Nothing can be uploaded. ${error}`)
}

function sizeLimit({ tenant, bucket }: UploadTarget): number {
  const { max_file_size: maxOfBucket } = bucket.config
  return maxOfBucket === 0 ? tenant.limits.max_upload_bytes : Math.min(maxOfBucket, tenant.limits.max_upload_bytes)
}

/** Checks the caller's permission before the bytes are read. The policies decide again when the row is written. */
async function checkPermission({ tenant, context, bucket, path, overwrite }: UploadTarget): Promise<void> {
  if (context.role === 'anon') throw new RuntimeError('UNAUTHORIZED', 'Uploading a file requires a signed-in user.')
  const owns = context.role === 'service' || bucket.ownerId === context.userId
  if (!owns && bucket.policy !== 'authenticated') throw uploadDenied(bucket.policy)
  if (owns && overwrite) return
  const { rows } = await lookUp(
    tenant,
    context,
    sql('select owner_id from storage_objects where bucket_id = $1 and path = $2', bucket.id, path),
  )
  const [row] = rows
  if (row === undefined) return
  if (!overwrite) throw new RuntimeError('KeyAlreadyExists', 'The resource already exists')
  if (context.role === 'authenticated' && row['owner_id'] !== context.userId) {
    throw objectDenied('overwrite')
  }
}
