// Uploads an object to an S3 server: a small one in one request, a large one in parts, where one part is filled while the
// previous one is sent. The object is stored as a whole or not at all.
import {
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  PutObjectCommand,
  UploadPartCommand,
  type CompletedPart,
} from '@aws-sdk/client-s3'
import type { S3Connection } from './connection.ts'
import { abortUpload } from './objects.ts'

/** The smallest part that servers accept before the last one. With 10,000 parts of it an object may have 52 GB. */
export const minPartBytes = 5 * 2 ** 20

/** An upload of one object: a small one in one request, a large one in parts. */
export class S3Upload {
  readonly #connection: S3Connection
  readonly #target: { Bucket: string; Key: string }
  readonly #cancel = new AbortController()
  readonly #sentParts: CompletedPart[] = []
  #startedParts = 0
  #uploadId: string | undefined
  readonly #partBytes: (number: number) => number
  #gathered: Uint8Array[] = []
  #gatheredBytes = 0
  #sending: Promise<void> = Promise.resolve()

  /** Begins an upload. @param partBytes returns the size of a part by its number from 1; every part but the last has it */
  constructor(connection: S3Connection, key: string, partBytes: (number: number) => number = () => minPartBytes) {
    this.#partBytes = partBytes
    this.#connection = connection
    this.#target = { Bucket: connection.bucket, Key: key }
  }

  /** Adds bytes. Returns when there is room for more. */
  async write(chunk: Uint8Array): Promise<void> {
    this.#gathered.push(chunk)
    this.#gatheredBytes += chunk.length
    if (this.#gatheredBytes >= this.#partBytes(this.#startedParts + 1)) await this.#startPart()
  }

  /** Sends the rest. Returns when the object is stored. */
  async end(): Promise<void> {
    if (this.#startedParts === 0) {
      const body = this.#take()
      await this.#connection.send(
        (client, options) =>
          client.send(new PutObjectCommand({ ...this.#target, Body: body, ContentLength: body.length }), options),
        undefined,
        body.length,
      )
      return
    }
    if (this.#gatheredBytes > 0) await this.#startPart()
    await this.#sending
    const upload = { ...this.#target, UploadId: this.#uploadId, MultipartUpload: { Parts: this.#sentParts } }
    await this.#connection.send((client, options) => client.send(new CompleteMultipartUploadCommand(upload), options))
  }

  /** Cancels the upload. A failure is harmless: uploads that never ended are found later. */
  async abort(): Promise<void> {
    this.#cancel.abort(new Error('The upload was cancelled.'))
    await this.#sending.catch(() => undefined)
    if (this.#uploadId === undefined) return
    await abortUpload(this.#connection, { key: this.#target.Key, uploadId: this.#uploadId }).catch(() => undefined)
  }

  /** Starts to send the gathered bytes as a part once the previous part is sent. */
  async #startPart(): Promise<void> {
    this.#startedParts++
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
      body.length,
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
