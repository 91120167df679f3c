// A blob on its way to an S3 server: in one request when it is small, in parts when it isn't, one part being filled while
// the one before it is sent. It is there as a whole or not at all.
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

/** The least that servers take as a part that is not the last; with 10,000 parts a blob may have 52 GB. */
const partBytes = 5 * 2 ** 20

/** @throws RuntimeError FILE_TOO_LARGE past `limit` bytes, STORAGE_FULL, STORAGE_UNAVAILABLE; what the source fails with */
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
  readonly #sent: CompletedPart[] = []
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
    if (this.#gatheredBytes >= partBytes) await this.#pass()
  }

  /** Returns when the blob is there. */
  async end(): Promise<void> {
    if (!this.#inParts) {
      const body = this.#take()
      await this.#connection.send((client, options) =>
        client.send(new PutObjectCommand({ ...this.#target, Body: body, ContentLength: body.length }), options),
      )
      return
    }
    if (this.#gatheredBytes > 0) await this.#pass()
    await this.#sending
    const upload = { ...this.#target, UploadId: this.#uploadId, MultipartUpload: { Parts: this.#sent } }
    await this.#connection.send((client, options) => client.send(new CompleteMultipartUploadCommand(upload), options))
  }

  /** Takes back what was sent. Failing at it is no harm: the sweeper finds uploads that never ended. */
  async abort(): Promise<void> {
    this.#cancel.abort(new Error('the upload is given up'))
    await this.#sending.catch(() => undefined)
    if (this.#uploadId === undefined) return
    const upload = { ...this.#target, UploadId: this.#uploadId }
    await this.#connection
      .find((client, options) => client.send(new AbortMultipartUploadCommand(upload), options))
      .catch(() => undefined)
  }

  /** Sends what was gathered once the part before it has gone. */
  async #pass(): Promise<void> {
    this.#inParts = true
    await this.#sending
    this.#sending = this.#send(this.#take())
    // Whoever waits for it next hears of its failure.
    this.#sending.catch(() => undefined)
  }

  async #send(body: Buffer): Promise<void> {
    const { signal } = this.#cancel
    this.#uploadId ??= (
      await this.#connection.send((client, options) =>
        client.send(new CreateMultipartUploadCommand(this.#target), options),
      )
    ).UploadId
    const number = this.#sent.length + 1
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
    this.#sent.push({ PartNumber: number, ETag })
  }

  #take(): Buffer {
    const body = Buffer.concat(this.#gathered)
    this.#gathered = []
    this.#gatheredBytes = 0
    return body
  }
}
