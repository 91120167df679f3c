// Blobs in a bucket of an S3 server. A blob is put under a key of its own, once, and never changed.
//
//   <prefix><tenant>/store         mark of the store
//   <prefix><tenant>/claims/…      how its mark was agreed upon
//   <prefix><tenant>/paired        there when the tenant's other blobs lie in another store
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

/** A server may end a download whose blob is removed, and does end one that is read too slowly: it is begun again then. */
const defaultLingerMilliseconds = 15 * 60_000
/** Without a byte for so long a download is begun again where it stood. */
const silenceMilliseconds = 15_000
/** In a row, without a byte between them. */
const maxFailures = 3
const removalsAtOnce = 8

interface Entry {
  /** Without the prefix that was asked for. */
  name: string
  age: number
  size?: number
  /** Of one that is only begun. */
  uploadId?: string
}

export class S3Backend implements BlobBackend {
  readonly name = 's3'
  readonly lingerMilliseconds: number
  readonly #connection: S3Connection
  readonly #prefix: string
  readonly #where: string
  /** Tenants that are gone; their ids are never used again. */
  readonly #removed = new Set<string>()

  constructor(settings: S3Settings, lingerMilliseconds = defaultLingerMilliseconds) {
    this.#connection = new S3Connection(settings)
    this.#prefix = settings.prefix
    this.#where = `the bucket ${settings.bucket}${settings.endpoint === undefined ? '' : ` at ${settings.endpoint}`}`
    this.lingerMilliseconds = lingerMilliseconds
  }

  /** Can the bucket be written, read, listed, and does it forget what is removed? */
  async start(): Promise<void> {
    const key = `${this.#prefix}probe-${randomUUID()}`
    const text = randomUUID()
    let seen: (string | undefined)[]
    try {
      await this.#putText(key, text)
      const listed = await this.#names(key)
      seen = [await this.#text(key), listed.length === 1 ? 'listed' : undefined]
      await this.#delete(key)
      seen.push(await this.#text(key))
    } catch (cause) {
      throw new Error(`${this.#where} can not be used: ${reason(cause)}`, { cause })
    }
    if (seen[0] !== text || seen[1] !== 'listed' || seen[2] !== undefined)
      throw new Error(`${this.#where} does not show at once what was written`)
  }

  /** Whether the server answers is seen by whoever looks for the mark. */
  async error(): Promise<undefined> {
    return undefined
  }

  async put(tenantId: string, blobId: string, source: Readable, limit: number): Promise<StoredBlob> {
    const stored = await uploadBlob(this.#connection, this.#key(tenantId, blobId), source, limit)
    if (this.#removed.has(tenantId)) throw await this.#gone(tenantId)
    return stored
  }

  async open(tenantId: string, blobId: string): Promise<OpenBlob | undefined> {
    const key = this.#key(tenantId, blobId)
    // Of the whole blob: that is what is mostly wanted, and from here on the server sends it even if it is removed.
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
        if (body === undefined) throw new Error('read already')
        try {
          const bytes = await buffer(untilSilent(body))
          if (bytes.length < size) throw new RuntimeError('FILE_MISSING', 'Object not found: its file was cut short')
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

  /** Goes on where it stood when the connection breaks: a blob is the same whenever it is read. */
  async *#read(key: string, start: number, end: number, first: Readable | undefined): AsyncGenerator<Buffer> {
    let body = first
    let at = start
    for (let failures = 0; at <= end;) {
      try {
        body ??= await this.#get(key, at, end)
        if (body === undefined) throw new RuntimeError('FILE_MISSING', 'Object not found: its file is missing')
        for await (const chunk of untilSilent(body)) {
          const wanted = chunk.subarray(0, end - at + 1)
          at += wanted.length
          failures = 0
          yield wanted
          if (at > end) break
        }
        if (at <= end) throw new Error('the server ended the download')
      } catch (cause) {
        if (++failures >= maxFailures || cause instanceof RuntimeError) throw storageError(cause)
      } finally {
        body?.destroy()
        body = undefined
      }
    }
  }

  /** To the end of the blob when `end` is undefined; undefined when there is none. */
  async #get(key: string, start: number, end: number | undefined): Promise<Readable | undefined> {
    const range = start === 0 && end === undefined ? {} : { Range: `bytes=${start}-${end ?? ''}` }
    const response = await this.#connection.find((client, options) =>
      client.send(new GetObjectCommand({ Bucket: this.#connection.bucket, Key: key, ...range }), options),
    )
    if (response === undefined) return undefined
    if (!(response.Body instanceof Readable))
      throw new RuntimeError('STORAGE_UNAVAILABLE', 'the storage does not answer as it should')
    // Whoever reads it hears of its failure; one that is not read any more may fail unheard.
    return response.Body.on('error', () => undefined)
  }

  async remove(tenantId: string, blobId: string): Promise<void> {
    const key = this.#key(tenantId, blobId)
    await this.#delete(key)
    for await (const { uploadId } of this.#begun(key)) await this.#abort(key, uploadId)
  }

  async *list(tenantId: string): AsyncGenerator<ListedBlob> {
    const prefix = `${this.#prefix}${tenantId}/blobs/`
    for (const entries of [this.#whole(prefix), this.#begun(prefix)]) {
      for await (const { name, age, size = 0 } of entries) if (blobName.test(name)) yield { blobId: name, age, size }
    }
  }

  storeId(tenantId: string): Promise<string | undefined> {
    return this.#text(this.#of(tenantId, 'store'))
  }

  async claimStore(tenantId: string, storeId: string): Promise<string> {
    if (this.#removed.has(tenantId)) throw await this.#gone(tenantId)
    const found = await this.storeId(tenantId)
    if (found !== undefined) return found
    const at = (name: string) => this.#of(tenantId, `claims/${name}`)
    const agreed = await agree(
      {
        get: (name) => this.#text(at(name)),
        put: (name, text) => this.#putText(at(name), text),
        names: (prefix) => this.#names(at(prefix)),
      },
      storeId,
    )
    await this.#putText(this.#of(tenantId, 'store'), agreed)
    if (this.#removed.has(tenantId)) throw await this.#gone(tenantId)
    return agreed
  }

  async isPaired(tenantId: string): Promise<boolean> {
    return (await this.#text(this.#of(tenantId, 'paired'))) !== undefined
  }

  async setPaired(tenantId: string, paired: boolean): Promise<void> {
    const key = this.#of(tenantId, 'paired')
    await (paired ? this.#putText(key, 'paired') : this.#delete(key))
  }

  async removeTenant(tenantId: string): Promise<void> {
    this.#removed.add(tenantId)
    const prefix = this.#of(tenantId, '')
    await inTurns(this.#whole(prefix), removalsAtOnce, ({ name }) => this.#delete(`${prefix}${name}`))
    await inTurns(this.#begun(prefix), removalsAtOnce, ({ name, uploadId }) =>
      this.#abort(`${prefix}${name}`, uploadId),
    )
  }

  /** Takes away what an upload has written of a tenant that was removed meanwhile. */
  async #gone(tenantId: string): Promise<RuntimeError> {
    await this.removeTenant(tenantId)
    return new RuntimeError('STORAGE_UNAVAILABLE', 'the tenant is gone')
  }

  #of(tenantId: string, name: string): string {
    return `${this.#prefix}${tenantId}/${name}`
  }

  /** @throws RuntimeError FILE_MISSING for what is no blob's name */
  #key(tenantId: string, blobId: string): string {
    if (!blobName.test(blobId)) throw new RuntimeError('FILE_MISSING', 'Object not found: its file is missing')
    return this.#of(tenantId, `blobs/${blobId}`)
  }

  async #text(key: string): Promise<string | undefined> {
    const body = await this.#get(key, 0, undefined)
    if (body === undefined) return undefined
    try {
      return (await buffer(untilSilent(body))).toString('utf8').trim()
    } catch (cause) {
      throw storageError(cause)
    }
  }

  async #putText(key: string, text: string): Promise<void> {
    await this.#connection.send((client, options) =>
      client.send(new PutObjectCommand({ Bucket: this.#connection.bucket, Key: key, Body: text }), options),
    )
  }

  /** One that is absent is no error. */
  async #delete(key: string): Promise<void> {
    await this.#connection.find((client, options) =>
      client.send(new DeleteObjectCommand({ Bucket: this.#connection.bucket, Key: key }), options),
    )
  }

  /** One that has ended is no error. */
  async #abort(key: string, uploadId: string | undefined): Promise<void> {
    const upload = { Bucket: this.#connection.bucket, Key: key, UploadId: uploadId }
    await this.#connection.find((client, options) => client.send(new AbortMultipartUploadCommand(upload), options))
  }

  async #names(prefix: string): Promise<string[]> {
    const names: string[] = []
    for await (const { name } of this.#whole(prefix)) names.push(name)
    return names
  }

  async *#whole(prefix: string): AsyncGenerator<Entry> {
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

  /** Uploads in parts that have not ended. */
  async *#begun(prefix: string): AsyncGenerator<Entry> {
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

/** In milliseconds. The server's clock says it, and some servers round up to the next second. */
function ageOf(time: Date | undefined): number {
  return time === undefined ? 0 : Math.max(0, Date.now() - time.getTime())
}

/** The body's chunks; it fails when none comes for long while somebody waits for it. */
async function* untilSilent(body: Readable): AsyncGenerator<Buffer> {
  const chunks = (body as AsyncIterable<Buffer>)[Symbol.asyncIterator]()
  for (;;) {
    const timer = setTimeout(() => body.destroy(new Error('the server fell silent')), silenceMilliseconds)
    const next = await chunks.next().finally(() => clearTimeout(timer))
    if (next.done === true) return
    yield next.value
  }
}

/** `work` for each entry, for some at once. */
async function inTurns(
  entries: AsyncIterable<Entry>,
  atOnce: number,
  work: (entry: Entry) => Promise<void>,
): Promise<void> {
  let batch: Entry[] = []
  for await (const entry of entries) {
    batch.push(entry)
    if (batch.length < atOnce) continue
    await Promise.all(batch.map(work))
    batch = []
  }
  await Promise.all(batch.map(work))
}

/** In the server's own words, for the operator who starts the runtime. */
function reason(cause: unknown): string {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause
  return inner instanceof Error ? `${inner.name}: ${inner.message}` : String(inner)
}
