// The protocol of a write: a file exists if and only if its metadata exists (specification, FS-I1).
//
//   1  authorise; check size, type and the store's mark before any disk byte; Tx A: intent, with reserved bytes for a body
//      that is large. A small one's intent may have been made in advance (spare-intents.ts): its room is seen to in Tx B
//   2  stream to disk, durably, under a fresh name
//   3  Tx B, shared with other uploads of the tenant: rules, room and store again; row, event, end of the intent; COMMIT; answer
//   4  what the row pointed to before is collected afterwards
//
// After a failed Tx B whose outcome is known, the blob is taken back; when the connection broke at COMMIT the outcome is
// not known, and only the sweeper, which looks at the database, may decide.
import type { Readable } from 'node:stream'
import { isDecided } from '../../database/shared-round-trips.ts'
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
  books: UploadRecords
  /** A name that no blob has had; names that are given out together share a directory. */
  freshBlobId: () => string
}

/** Up to this a body may be on disk before there is known to be room for it. */
const smallBytes = 64 * 1024

interface UploadTarget {
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

interface UploadMetadata {
  cacheControl: string
  metadata: Record<string, unknown>
}

/** What Tx A gave. */
interface Intent {
  blobId: string
  /** Mark of the store that the blob goes to. */
  storeId: string
  /** Bytes that may come. */
  limit: number
}

/** An upload that has begun: nobody but it may use its blob's name, and the sweeper knows of it. */
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
   * Begins an upload. No byte is taken before it has succeeded.
   * @throws RuntimeError ACCESS_DENIED, FILE_TOO_LARGE, MIME_NOT_ALLOWED, KeyAlreadyExists, QUOTA_EXCEEDED,
   *   STORAGE_UNAVAILABLE
   */
  static async begin(deps: UploadDeps, target: UploadTarget): Promise<Upload> {
    deps.collector.expect(target.tenant)
    const { bucket, contentType, declaredSize } = target
    const limit = sizeLimit(target)
    if (declaredSize !== undefined && declaredSize > limit)
      throw new RuntimeError('FILE_TOO_LARGE', 'The object exceeded the maximum allowed size')
    if (!allowsType(bucket.config, contentType))
      throw new RuntimeError('MIME_NOT_ALLOWED', `mime type ${contentType} is not supported`)
    await checkRight(target)
    await deps.failpoint('upload.before-intent')
    const intent = await intend(deps, target, limit)
    await deps.failpoint('upload.after-intent')
    return new Upload(deps, target, intent)
  }

  /** Takes the bytes. @throws RuntimeError FILE_TOO_LARGE, STORAGE_FULL, STORAGE_UNAVAILABLE; nothing is left behind then */
  async write(source: Readable): Promise<void> {
    const { tenant, declaredSize } = this.#target
    const { blobId, storeId, limit } = this.#intent
    try {
      this.#stored = await this.#deps.backend.put(tenant.id, blobId, source, limit)
      await this.#deps.failpoint('upload.after-write')
      if ((await this.#deps.backend.storeId(tenant.id)) !== storeId) throw takenAway()
      if (declaredSize !== undefined && this.#stored.size !== declaredSize) {
        throw new RuntimeError(
          'BAD_REQUEST',
          `the body has ${this.#stored.size} bytes, but ${declaredSize} were declared`,
        )
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
    await this.#deps.failpoint('upload.before-commit')
    try {
      const { blobId, storeId } = this.#intent
      const recorded = await this.#deps.books.record(tenant, {
        context,
        overwrite,
        blobId,
        storeId,
        bucketId: bucket.id,
        bucketName: bucket.name,
        path,
        size: stored.size,
        contentType,
        etag: stored.sha256,
        cacheControl,
        metadata,
      })
      await this.#deps.failpoint('upload.after-commit')
      if (typeof recorded !== 'object') throw await this.#notRecorded(recorded)
      if (recorded.replaced) this.#deps.collector.wake(tenant)
      return recorded.object
    } catch (error) {
      if (isDecided(error)) await this.abandon()
      throw error
    }
  }

  async #notRecorded(why: NotWritten): Promise<RuntimeError> {
    const { tenant } = this.#target
    if (why === 'given up')
      return new RuntimeError('STORAGE_UNAVAILABLE', 'the upload took so long that it was given up; send it again')
    await this.abandon()
    if (why === 'no room') return noRoom(this.#deps, tenant)
    const error = await storeError(this.#deps.backend, tenant)
    return error === undefined ? takenAway() : unusable(error)
  }

  /** Removes the blob, of which no row tells, and gives the reserved bytes back. Failing at it is no harm: the sweeper does the same. */
  async abandon(): Promise<void> {
    await abandon(this.#deps, this.#target, this.#intent.blobId)
  }
}

async function abandon(
  { backend, books: records }: UploadDeps,
  { tenant }: UploadTarget,
  blobId: string,
): Promise<void> {
  // What fails is left to the sweeper.
  await records.abandon(tenant, blobId, () => backend.remove(tenant.id, blobId)).catch(() => undefined)
}

/** Tx A. @throws RuntimeError QUOTA_EXCEEDED, STORAGE_UNAVAILABLE */
async function intend(deps: UploadDeps, target: UploadTarget, limit: number): Promise<Intent> {
  const { backend, books: records, freshBlobId } = deps
  const { tenant, declaredSize, atMost } = target
  const max = declaredSize ?? atMost ?? limit
  let storeId = await backend.storeId(tenant.id)
  // In a store without a mark there may be no place for it yet.
  if (max <= smallBytes && storeId !== undefined) return { blobId: await records.intend(tenant), storeId, limit }
  const blobId = freshBlobId()
  for (let again = false; ; again = true) {
    const reserved = await records
      .reserve(tenant, { blobId, declared: declaredSize, most: Math.min(limit, max), storeId })
      .catch(async (error: unknown) => {
        if (!isDecided(error)) await abandon(deps, target, blobId)
        throw error
      })
    if (reserved === 'no room') throw await noRoom(deps, tenant)
    if (reserved !== 'not in this store' && storeId !== undefined)
      return { blobId, storeId, limit: Math.min(limit, reserved) }
    if (again) throw takenAway()
    const violation = await storeError(backend, tenant)
    if (violation !== undefined) throw unusable(violation)
    storeId = await backend.storeId(tenant.id)
  }
}

async function noRoom({ books: records }: UploadDeps, tenant: Tenant): Promise<RuntimeError> {
  const limit = tenant.limits.file_bytes ?? 0
  const used = await records.used(tenant)
  return new RuntimeError(
    'QUOTA_EXCEEDED',
    `the tenant's file storage of ${limit} bytes has no room for this: ${used} are taken`,
    { extra: { limit, used } },
  )
}

function takenAway(): RuntimeError {
  return new RuntimeError('STORAGE_UNAVAILABLE', 'the files were replaced just now; send it again')
}

function unusable(error: string): RuntimeError {
  return new RuntimeError('STORAGE_UNAVAILABLE', `nothing can be uploaded: ${error}`)
}

function sizeLimit({ tenant, bucket }: UploadTarget): number {
  const { max_file_size: ofBucket } = bucket.config
  return ofBucket === 0 ? tenant.limits.max_upload_bytes : Math.min(ofBucket, tenant.limits.max_upload_bytes)
}

/** Before the bytes, as far as it can be known; the policies have the last word when the row is written. */
async function checkRight({ tenant, context, bucket, path, overwrite }: UploadTarget): Promise<void> {
  if (context.role === 'anon') throw new RuntimeError('UNAUTHORIZED', 'uploading needs a signed-in user')
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
