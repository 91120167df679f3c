// The protocol of a write: a file exists if and only if its metadata exists (specification, FS-I1).
//
//   1  authorise; check size, type and the store's mark before any disk byte; Tx A: intent with reserved bytes
//   2  stream to disk, durably, under a fresh name; a small body goes to disk while Tx A is under way
//   3  Tx B: row, event, end of the intent; COMMIT; answer
//   4  what the row pointed to before is collected afterwards
//
// Both transactions are shared with other uploads of the tenant that wait for one (upload-books.ts).
//
// After a failed Tx B whose outcome is known, the blob is taken back; when the connection broke at COMMIT the outcome is
// not known, and only the sweeper, which looks at the database, may decide.
import type { Readable } from 'node:stream'
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
import { isDecided } from './group-commit.ts'
import type { StoredObject } from './object.ts'
import { bookkeeping, type UploadBooks } from './upload-books.ts'

export interface UploadDeps {
  backend: BlobBackend
  collector: Collector
  failpoint: StorageFailpoint
  limits: StorageLimits
  books: UploadBooks
  /** A name that no blob has had; names that are given out together share a directory. */
  freshBlobId: () => string
}

/** Up to this a body may be on disk before its bytes are reserved. */
const smallBytes = 64 * 1024

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

export class Upload {
  readonly #deps: UploadDeps
  readonly #target: UploadTarget
  readonly #blobId: string
  #limit = 0
  /** Tx A of a small body, under way. */
  #reserving: Promise<void> | undefined
  /** Mark of the store that the blob goes to. */
  #storeId: string | undefined
  /** There may be an intent. */
  #intended = false
  #stored: { size: number; sha256: string } | undefined

  constructor(deps: UploadDeps, target: UploadTarget) {
    this.#deps = deps
    this.#target = target
    this.#blobId = deps.freshBlobId()
  }

  /** @throws RuntimeError ACCESS_DENIED, FILE_TOO_LARGE, MIME_NOT_ALLOWED, KeyAlreadyExists, QUOTA_EXCEEDED, STORAGE_UNAVAILABLE before any byte is taken */
  async begin(): Promise<void> {
    this.#deps.collector.expect(this.#target.tenant)
    const { bucket, contentType, declaredSize } = this.#target
    const limit = this.#sizeLimit()
    if (declaredSize !== undefined && declaredSize > limit) throw new RuntimeError('FILE_TOO_LARGE', 'The object exceeded the maximum allowed size')
    if (!allowsType(bucket.config, contentType)) throw new RuntimeError('MIME_NOT_ALLOWED', `mime type ${contentType} is not supported`)
    await this.#checkRight()
    await this.#deps.failpoint('upload.before-intent')
    this.#limit = limit
    this.#storeId = await this.#deps.backend.storeId(this.#target.tenant.id)
    this.#reserving = this.#reserve(limit)
    this.#reserving.catch(() => undefined)
    // In a store without a mark there may be no place for it yet.
    const mayGoAhead = declaredSize !== undefined && declaredSize <= smallBytes && this.#storeId !== undefined
    if (!mayGoAhead) await this.#reserving
  }

  /** Tx A. @throws RuntimeError QUOTA_EXCEEDED, STORAGE_UNAVAILABLE */
  async #reserve(limit: number): Promise<void> {
    const { backend, books } = this.#deps
    const { tenant, declaredSize, atMost } = this.#target
    const reserve = async () => {
      this.#intended = true
      const reserved = await books.reserve(tenant, { blobId: this.#blobId, declared: declaredSize, most: Math.min(limit, atMost ?? limit), storeId: this.#storeId })
      this.#intended = typeof reserved === 'number'
      return reserved
    }
    let reserved = await reserve()
    if (reserved === 'not in this store') {
      const problem = await storeProblem(backend, tenant)
      if (problem !== undefined) throw new RuntimeError('STORAGE_UNAVAILABLE', `nothing can be uploaded: ${problem}`)
      this.#storeId = await backend.storeId(tenant.id)
      reserved = await reserve()
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
      // Neither goes on behind the other's error: what is taken back is then whole.
      const [put, reserved] = await Promise.allSettled([this.#deps.backend.put(tenant.id, this.#blobId, source, this.#limit), this.#reserving])
      if (reserved.status === 'rejected') {
        if (!this.#intended) await this.#deps.backend.remove(tenant.id, this.#blobId)
        throw reserved.reason
      }
      if (put.status === 'rejected') throw put.reason
      this.#stored = put.value
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
    await this.#deps.failpoint('upload.before-commit')
    try {
      const object = await this.#deps.books.record(tenant, {
        context, overwrite, blobId: this.#blobId, bucketId: bucket.id, bucketName: bucket.name, path,
        size: stored.size, contentType, etag: stored.sha256, cacheControl, metadata,
      })
      await this.#deps.failpoint('upload.after-commit')
      if (object === 'given up') throw new RuntimeError('STORAGE_UNAVAILABLE', 'the upload took so long that it was given up; send it again')
      this.#deps.collector.wake(tenant)
      return object
    } catch (error) {
      if (isDecided(error)) await this.abandon()
      throw error
    }
  }

  /** Gives the reserved bytes back and removes the blob. Failing at it is no harm: the sweeper does the same. */
  async abandon(): Promise<void> {
    if (!this.#intended) return
    const { tenant } = this.#target
    await Promise.allSettled([this.#reserving])
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
