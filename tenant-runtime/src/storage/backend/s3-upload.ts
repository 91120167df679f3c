// Uploads a blob to an S3 server: a small one in one request, a large one in parts, where one part is filled while the
// previous one is sent. The blob is stored as a whole or not at all.
import { createHash } from 'node:crypto'
import type { Readable } from 'node:stream'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  UploadPartCommand,
  type CompletedPart,
} from '@aws-sdk/client-s3'
import { RuntimeError } from '../../errors.ts'
import type { StoredBlob } from './backend.ts'
import type { S3Connection } from './s3-connection.ts'

/** The smallest part that servers accept before the last one. With 10,000 parts a blob may have 52 GB. */
const partBytes = 5 * 2 ** 20

/** Uploads a blob. @throws RuntimeError FILE_TOO_LARGE past `limit` bytes, STORAGE_FULL, STORAGE_UNAVAILABLE; the source's error */
export async function uploadBlob(
  connection: S3Connection,
  key: string,
  source: Readable,
  limit: number,
): Promise<StoredBlob> {
  const hash = createHash('sha256')
  const parts = new Parts(connection, key)
  let size = 0
  try {
    for await (const chunk of source as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > limit) throw new RuntimeError('FILE_TOO_LARGE', 'The object exceeded the maximum allowed size')
      hash.update(chunk)
      await parts.write(chunk)
    }
    await parts.end()
  } catch (error) {
    await parts.abort()
    throw error
  }
  return { size, sha256: hash.digest('hex') }
}

class Parts {
  readonly #connection: S3Connection
  readonly #target: { Bucket: string; Key: string }
  readonly #cancel = new AbortController()
  readonly #sentParts: CompletedPart[] = []
  #inParts = false
  #uploadId: string | undefined
  #gathered: Buffer[] = []
  #gatheredBytes = 0
  #sending: Promise<void> = Promise.resolve()

  constructor(connection: S3Connection, key: string) {
    this.#connection = connection
    this.#target = { Bucket: connection.bucket, Key: key }
  }

  async write(chunk: Buffer): Promise<void> {
    this.#gathered.push(chunk)
    this.#gatheredBytes += chunk.length
    if (this.#gatheredBytes >= partBytes) await this.#startPart()
  }

  /** Sends the rest. Returns when the blob is stored. */
  async end(): Promise<void> {
    if (!this.#inParts) {
      const body = this.#take()
      await this.#connection.send((client, options) =>
        client.send(new PutObjectCommand({ ...this.#target, Body: body, ContentLength: body.length }), options),
      )
      return
    }
    if (this.#gatheredBytes > 0) await this.#startPart()
    await this.#sending
    const upload = { ...this.#target, UploadId: this.#uploadId, MultipartUpload: { Parts: this.#sentParts } }
    await this.#connection.send((client, options) => client.send(new CompleteMultipartUploadCommand(upload), options))
  }

  /** Cancels the upload. A failure is harmless: the collector finds uploads that never ended. */
  async abort(): Promise<void> {
    this.#cancel.abort(new Error('The upload was cancelled.'))
    await this.#sending.catch(() => undefined)
    if (this.#uploadId === undefined) return
    const upload = { ...this.#target, UploadId: this.#uploadId }
    await this.#connection
      .find((client, options) => client.send(new AbortMultipartUploadCommand(upload), options))
      .catch(() => undefined)
  }

  /** Starts to send the gathered bytes as a part once the previous part is sent. */
  async #startPart(): Promise<void> {
    this.#inParts = true
    await this.#sending
    this.#sending = this.#send(this.#take())
    // The next `await` of it reports its failure.
    this.#sending.catch(() => undefined)
  }

  async #send(body: Buffer): Promise<void> {
    const { signal } = this.#cancel
    this.#uploadId ??= (
      await this.#connection.send((client, options) =>
        client.send(new CreateMultipartUploadCommand(this.#target), options),
      )
    ).UploadId
    const number = this.#sentParts.length + 1
    const part = {
      ...this.#target,
      UploadId: this.#uploadId,
      PartNumber: number,
      Body: body,
      ContentLength: body.length,
    }
    const { ETag } = await this.#connection.send(
      (client, options) => client.send(new UploadPartCommand(part), options),
      signal,
    )
    this.#sentParts.push({ PartNumber: number, ETag })
  }

  #take(): Buffer {
    const body = Buffer.concat(this.#gathered)
    this.#gathered = []
    this.#gatheredBytes = 0
    return body
  }
}
