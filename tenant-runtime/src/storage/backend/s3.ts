// Blobs in a bucket of an S3 server. Each blob is written once under its own key and never changed.
//
//   <prefix><tenant>/store         the store's ID
//   <prefix><tenant>/claims/…      state of the protocol that decides the ID (s3-agreement.ts)
//   <prefix><tenant>/paired        exists while some of the tenant's blobs are in another store
//   <prefix><tenant>/blobs/<blob>
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import {
  abortUpload,
  deleteObject,
  getObject,
  listObjects,
  listUploads,
  putText,
  readObject,
  withTimeout,
  type S3Connection,
} from '@tenantry/contract/s3'
import { RuntimeError } from '../../errors.ts'
import { blobName, type BlobBackend, type ListedBlob, type OpenBlob, type StoredBlob } from './backend.ts'
import { agree } from './s3-agreement.ts'
import { connectStorage, storageError, type S3Settings } from './s3-connection.ts'
import { uploadBlob } from './s3-upload.ts'

/**
 * Default of `lingerMilliseconds`. A server may end the download of a removed blob, and ends one that is read too slowly,
 * after which the backend requests the rest.
 */
const defaultLingerMilliseconds = 15 * 60_000
const removalConcurrency = 8

export class S3Backend implements BlobBackend {
  readonly name = 's3'
  readonly stores: readonly string[]
  readonly lingerMilliseconds: number
  readonly #connection: S3Connection
  readonly #prefix: string
  readonly #bucketLabel: string
  /** Deleted tenants; their ids are never used again. */
  readonly #removed = new Set<string>()

  constructor(settings: S3Settings, lingerMilliseconds = defaultLingerMilliseconds) {
    this.#connection = connectStorage(settings)
    this.#prefix = settings.prefix
    this.#bucketLabel = `the bucket ${settings.bucket}${settings.endpoint === undefined ? '' : ` at ${settings.endpoint}`}`
    this.stores = [`${settings.endpoint ?? 'aws'} ${settings.bucket}/${settings.prefix}`]
    this.lingerMilliseconds = lingerMilliseconds
  }

  /** Checks that the bucket can be written, read and listed, and that a removed key is gone. @throws Error if not */
  async start(): Promise<void> {
    const key = `${this.#prefix}probe-${randomUUID()}`
    const text = randomUUID()
    let results: (string | undefined)[]
    try {
      await putText(this.#connection, key, text)
      const listed = await this.#names(key)
      results = [await this.#text(key), listed.length === 1 ? 'listed' : undefined]
      await deleteObject(this.#connection, key)
      results.push(await this.#text(key))
    } catch (cause) {
      throw new Error(`The storage can not use ${this.#bucketLabel}: ${reason(cause)}`, { cause })
    }
    if (results[0] !== text || results[1] !== 'listed' || results[2] !== undefined)
      throw new Error(`The storage can not use ${this.#bucketLabel}: a read does not return the last write.`)
  }

  /** Returns undefined: the check of the store's ID shows whether the server responds. */
  async error(): Promise<undefined> {
    return undefined
  }

  async put(tenantId: string, blobId: string, source: Readable, limit: number): Promise<StoredBlob> {
    const stored = await uploadBlob(this.#connection, this.#blobKey(tenantId, blobId), source, limit)
    if (this.#removed.has(tenantId)) throw await this.#removeAfterDeletion(tenantId)
    return stored
  }

  async open(tenantId: string, blobId: string): Promise<OpenBlob | undefined> {
    const key = this.#blobKey(tenantId, blobId)
    // Requests the whole blob, which most callers read. The server sends it even if the blob is removed meanwhile.
    let unread = await getObject(this.#connection, key, 0, undefined)
    if (unread === undefined) return undefined
    const read = (start: number, end: number): AsyncGenerator<Buffer> => {
      const first = start === 0 ? unread : undefined
      if (first !== undefined) unread = undefined
      else close()
      return readObject(this.#connection, key, {
        start,
        end,
        first,
        missing: () => new RuntimeError('FILE_MISSING', 'Object not found: its file is missing'),
      })
    }
    const close = () => {
      unread?.destroy()
      unread = undefined
    }
    return {
      read,
      stream: (start, end) => Readable.from(read(start, end), { objectMode: false }),
      async whole(size) {
        const body = unread
        unread = undefined
        if (body === undefined) throw new Error('The blob has been read already.')
        try {
          const bytes = await buffer(withTimeout(body))
          if (bytes.length < size) throw new RuntimeError('FILE_MISSING', 'Object not found: its file is truncated')
          return bytes
        } catch (cause) {
          throw storageError(cause)
        } finally {
          body.destroy()
        }
      },
      async close() {
        close()
      },
    }
  }

  async remove(tenantId: string, blobId: string): Promise<void> {
    const key = this.#blobKey(tenantId, blobId)
    await deleteObject(this.#connection, key)
    for await (const upload of listUploads(this.#connection, key)) await abortUpload(this.#connection, upload)
  }

  async *list(tenantId: string): AsyncGenerator<ListedBlob> {
    const prefix = `${this.#prefix}${tenantId}/blobs/`
    const blob = (key: string, time: Date | undefined, size: number): ListedBlob[] => {
      const blobId = key.slice(prefix.length)
      return blobName.test(blobId) ? [{ blobId, age: ageOf(time), size }] : []
    }
    for await (const { key, modified, size } of listObjects(this.#connection, prefix)) yield* blob(key, modified, size)
    for await (const { key, begun } of listUploads(this.#connection, prefix)) yield* blob(key, begun, 0)
  }

  storeId(tenantId: string): Promise<string | undefined> {
    return this.#text(this.#tenantKey(tenantId, 'store'))
  }

  async claimStore(tenantId: string, storeId: string): Promise<string> {
    if (this.#removed.has(tenantId)) throw await this.#removeAfterDeletion(tenantId)
    const found = await this.storeId(tenantId)
    if (found !== undefined) return found
    const at = (name: string) => this.#tenantKey(tenantId, `claims/${name}`)
    const agreed = await agree(
      {
        get: (name) => this.#text(at(name)),
        put: (name, text) => putText(this.#connection, at(name), text),
        names: (prefix) => this.#names(at(prefix)),
      },
      storeId,
    )
    await putText(this.#connection, this.#tenantKey(tenantId, 'store'), agreed)
    if (this.#removed.has(tenantId)) throw await this.#removeAfterDeletion(tenantId)
    return agreed
  }

  async isPaired(tenantId: string): Promise<boolean> {
    return (await this.#text(this.#tenantKey(tenantId, 'paired'))) !== undefined
  }

  async setPaired(tenantId: string, paired: boolean): Promise<void> {
    const key = this.#tenantKey(tenantId, 'paired')
    await (paired ? putText(this.#connection, key, 'paired') : deleteObject(this.#connection, key))
  }

  async removeTenant(tenantId: string): Promise<void> {
    this.#removed.add(tenantId)
    const prefix = this.#tenantKey(tenantId, '')
    const connection = this.#connection
    const concurrency = removalConcurrency
    await forEachInBatches(listObjects(connection, prefix), concurrency, ({ key }) => deleteObject(connection, key))
    await forEachInBatches(listUploads(connection, prefix), concurrency, (upload) => abortUpload(connection, upload))
  }

  readmitTenant(tenantId: string): void {
    this.#removed.delete(tenantId)
  }

  /** Removes what an upload has written after its tenant was deleted. */
  async #removeAfterDeletion(tenantId: string): Promise<RuntimeError> {
    await this.removeTenant(tenantId)
    return new RuntimeError('STORAGE_UNAVAILABLE', 'The tenant was deleted.')
  }

  #tenantKey(tenantId: string, name: string): string {
    return `${this.#prefix}${tenantId}/${name}`
  }

  /** Returns a blob's key. @throws RuntimeError FILE_MISSING if `blobId` is not a valid name */
  #blobKey(tenantId: string, blobId: string): string {
    if (!blobName.test(blobId)) throw new RuntimeError('FILE_MISSING', 'Object not found: its file is missing')
    return this.#tenantKey(tenantId, `blobs/${blobId}`)
  }

  async #text(key: string): Promise<string | undefined> {
    const body = await getObject(this.#connection, key, 0, undefined)
    if (body === undefined) return undefined
    try {
      return (await buffer(withTimeout(body))).toString('utf8').trim()
    } catch (cause) {
      throw storageError(cause)
    }
  }

  async #names(prefix: string): Promise<string[]> {
    const names: string[] = []
    for await (const { key } of listObjects(this.#connection, prefix)) names.push(key.slice(prefix.length))
    return names
  }
}

/** Returns an age in milliseconds; at least 0, because the time is of the server's clock and may be rounded up. */
function ageOf(time: Date | undefined): number {
  return time === undefined ? 0 : Math.max(0, Date.now() - time.getTime())
}

/** Runs `work` for each entry, in concurrent batches. */
async function forEachInBatches<T>(
  entries: AsyncIterable<T>,
  batchSize: number,
  work: (entry: T) => Promise<void>,
): Promise<void> {
  let batch: T[] = []
  for await (const entry of entries) {
    batch.push(entry)
    if (batch.length < batchSize) continue
    await Promise.all(batch.map(work))
    batch = []
  }
  await Promise.all(batch.map(work))
}

/** Returns the server's error for the operator who starts the runtime. */
function reason(cause: unknown): string {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  return inner instanceof Error ? `${inner.name}: ${inner.message}` : String(inner)
}
