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
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3'
import { RuntimeError } from '../../errors.ts'
import { blobName, type BlobBackend, type ListedBlob, type OpenBlob, type StoredBlob } from './backend.ts'
import { agree } from './s3-agreement.ts'
import { S3Connection, storageError, type S3Settings } from './s3-connection.ts'
import { uploadBlob } from './s3-upload.ts'

/**
 * Default of `lingerMilliseconds`. A server may end the download of a removed blob, and ends one that is read too slowly,
 * after which the backend requests the rest.
 */
const defaultLingerMilliseconds = 15 * 60_000
/** After this time without a byte, the rest of a download is requested again. */
const silenceMilliseconds = 15_000
/** Failures of a download in a row, without a byte between them. */
const maxFailures = 3
const removalConcurrency = 8

interface Entry {
  /** The key without the prefix of the listing. */
  name: string
  /** Milliseconds. */
  age: number
  /** Bytes; undefined for an upload. */
  size?: number
  /** The ID of an upload that has not ended. */
  uploadId?: string
}

export class S3Backend implements BlobBackend {
  readonly name = 's3'
  readonly lingerMilliseconds: number
  readonly #connection: S3Connection
  readonly #prefix: string
  readonly #bucketLabel: string
  /** Deleted tenants; their ids are never used again. */
  readonly #removed = new Set<string>()

  constructor(settings: S3Settings, lingerMilliseconds = defaultLingerMilliseconds) {
    this.#connection = new S3Connection(settings)
    this.#prefix = settings.prefix
    this.#bucketLabel = `the bucket ${settings.bucket}${settings.endpoint === undefined ? '' : ` at ${settings.endpoint}`}`
    this.lingerMilliseconds = lingerMilliseconds
  }

  /** Checks that the bucket can be written, read and listed, and that a removed key is gone. @throws Error if not */
  async start(): Promise<void> {
    const key = `${this.#prefix}probe-${randomUUID()}`
    const text = randomUUID()
    let results: (string | undefined)[]
    try {
      await this.#putText(key, text)
      const listed = await this.#names(key)
      results = [await this.#text(key), listed.length === 1 ? 'listed' : undefined]
      await this.#delete(key)
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
    let unread = await this.#get(key, 0, undefined)
    if (unread === undefined) return undefined
    const read = (start: number, end: number): AsyncGenerator<Buffer> => {
      const first = start === 0 ? unread : undefined
      if (first !== undefined) unread = undefined
      else close()
      return this.#read(key, start, end, first)
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

  /** Reads a range. If the connection breaks, requests the rest, because blobs never change. */
  async *#read(key: string, start: number, end: number, first: Readable | undefined): AsyncGenerator<Buffer> {
    let body = first
    let at = start
    for (let failures = 0; at <= end;) {
      try {
        body ??= await this.#get(key, at, end)
        if (body === undefined) throw new RuntimeError('FILE_MISSING', 'Object not found: its file is missing')
        for await (const chunk of withTimeout(body)) {
          const wanted = chunk.subarray(0, end - at + 1)
          at += wanted.length
          failures = 0
          yield wanted
          if (at > end) break
        }
        if (at <= end) throw new Error('The server ended the download.')
      } catch (cause) {
        if (++failures >= maxFailures || cause instanceof RuntimeError) throw storageError(cause)
      } finally {
        body?.destroy()
        body = undefined
      }
    }
  }

  /** Requests a range, to the end of the blob if `end` is undefined. @returns undefined if the blob does not exist */
  async #get(key: string, start: number, end: number | undefined): Promise<Readable | undefined> {
    const range = start === 0 && end === undefined ? {} : { Range: `bytes=${start}-${end ?? ''}` }
    const response = await this.#connection.find((client, options) =>
      client.send(new GetObjectCommand({ Bucket: this.#connection.bucket, Key: key, ...range }), options),
    )
    if (response === undefined) return undefined
    if (!(response.Body instanceof Readable))
      throw new RuntimeError('STORAGE_UNAVAILABLE', 'The storage returned an invalid response.')
    // Readers receive the error anyway; without this handler, a body that is no longer read would end the process.
    return response.Body.on('error', () => undefined)
  }

  async remove(tenantId: string, blobId: string): Promise<void> {
    const key = this.#blobKey(tenantId, blobId)
    await this.#delete(key)
    for await (const { uploadId } of this.#uploads(key)) await this.#abort(key, uploadId)
  }

  async *list(tenantId: string): AsyncGenerator<ListedBlob> {
    const prefix = `${this.#prefix}${tenantId}/blobs/`
    for (const entries of [this.#objects(prefix), this.#uploads(prefix)]) {
      for await (const { name, age, size = 0 } of entries) if (blobName.test(name)) yield { blobId: name, age, size }
    }
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
        put: (name, text) => this.#putText(at(name), text),
        names: (prefix) => this.#names(at(prefix)),
      },
      storeId,
    )
    await this.#putText(this.#tenantKey(tenantId, 'store'), agreed)
    if (this.#removed.has(tenantId)) throw await this.#removeAfterDeletion(tenantId)
    return agreed
  }

  async isPaired(tenantId: string): Promise<boolean> {
    return (await this.#text(this.#tenantKey(tenantId, 'paired'))) !== undefined
  }

  async setPaired(tenantId: string, paired: boolean): Promise<void> {
    const key = this.#tenantKey(tenantId, 'paired')
    await (paired ? this.#putText(key, 'paired') : this.#delete(key))
  }

  async removeTenant(tenantId: string): Promise<void> {
    this.#removed.add(tenantId)
    const prefix = this.#tenantKey(tenantId, '')
    await forEachInBatches(this.#objects(prefix), removalConcurrency, ({ name }) => this.#delete(`${prefix}${name}`))
    await forEachInBatches(this.#uploads(prefix), removalConcurrency, ({ name, uploadId }) =>
      this.#abort(`${prefix}${name}`, uploadId),
    )
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
    const body = await this.#get(key, 0, undefined)
    if (body === undefined) return undefined
    try {
      return (await buffer(withTimeout(body))).toString('utf8').trim()
    } catch (cause) {
      throw storageError(cause)
    }
  }

  async #putText(key: string, text: string): Promise<void> {
    await this.#connection.send((client, options) =>
      client.send(new PutObjectCommand({ Bucket: this.#connection.bucket, Key: key, Body: text }), options),
    )
  }

  /** Removes an object. A missing one is not an error. */
  async #delete(key: string): Promise<void> {
    await this.#connection.find((client, options) =>
      client.send(new DeleteObjectCommand({ Bucket: this.#connection.bucket, Key: key }), options),
    )
  }

  /** Cancels an upload. One that has ended is not an error. */
  async #abort(key: string, uploadId: string | undefined): Promise<void> {
    const upload = { Bucket: this.#connection.bucket, Key: key, UploadId: uploadId }
    await this.#connection.find((client, options) => client.send(new AbortMultipartUploadCommand(upload), options))
  }

  async #names(prefix: string): Promise<string[]> {
    const names: string[] = []
    for await (const { name } of this.#objects(prefix)) names.push(name)
    return names
  }

  async *#objects(prefix: string): AsyncGenerator<Entry> {
    let after: string | undefined
    do {
      const page = {
        Bucket: this.#connection.bucket,
        Prefix: prefix,
        ...(after === undefined ? {} : { ContinuationToken: after }),
      }
      const { Contents = [], NextContinuationToken } = await this.#connection.send((client, options) =>
        client.send(new ListObjectsV2Command(page), options),
      )
      for (const { Key, LastModified, Size = 0 } of Contents)
        if (Key !== undefined) yield { name: Key.slice(prefix.length), age: ageOf(LastModified), size: Size }
      after = NextContinuationToken
    } while (after !== undefined)
  }

  /** Lists multipart uploads that have not ended. */
  async *#uploads(prefix: string): AsyncGenerator<Entry> {
    let after: { KeyMarker: string; UploadIdMarker: string } | undefined
    do {
      const page = { Bucket: this.#connection.bucket, Prefix: prefix, ...after }
      const {
        Uploads = [],
        IsTruncated,
        NextKeyMarker,
        NextUploadIdMarker,
      } = await this.#connection.send((client, options) => client.send(new ListMultipartUploadsCommand(page), options))
      for (const { Key, UploadId, Initiated } of Uploads) {
        if (Key !== undefined && UploadId !== undefined)
          yield { name: Key.slice(prefix.length), age: ageOf(Initiated), uploadId: UploadId }
      }
      after =
        IsTruncated === true && NextKeyMarker !== undefined
          ? { KeyMarker: NextKeyMarker, UploadIdMarker: NextUploadIdMarker ?? '' }
          : undefined
    } while (after !== undefined)
  }
}

/** Returns an age in milliseconds; at least 0, because the time is of the server's clock and may be rounded up. */
function ageOf(time: Date | undefined): number {
  return time === undefined ? 0 : Math.max(0, Date.now() - time.getTime())
}

/** Yields the body's chunks. @throws Error if none arrives in time */
async function* withTimeout(body: Readable): AsyncGenerator<Buffer> {
  const chunks = (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
  for (;;) {
    const timer = setTimeout(() => body.destroy(new Error('The server stopped sending.')), silenceMilliseconds)
    const next = await chunks.next().finally(() => clearTimeout(timer))
    if (next.done === true) return
    yield next.value
  }
}

/** Runs `work` for each entry, in concurrent batches. */
async function forEachInBatches(
  entries: AsyncIterable<Entry>,
  batchSize: number,
  work: (entry: Entry) => Promise<void>,
): Promise<void> {
  let batch: Entry[] = []
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
