// The way to one bucket of an S3 server: every request with a deadline and few retries, every failure in storage's words.
import { S3Client, S3ServiceException } from '@aws-sdk/client-s3'
import { RuntimeError } from '../../errors.ts'

export interface S3Settings {
  /** Undefined for AWS' own of the region. */
  endpoint: string | undefined
  region: string
  bucket: string
  /** Before every key; empty, or with a slash at its end. */
  prefix: string
  /** The bucket's name as the first part of the path, not of the host. */
  pathStyle: boolean
  accessKeyId: string
  secretAccessKey: string
}

/** For a request and its retries; a part's bytes among it. */
const requestMilliseconds = 30_000
const connectMilliseconds = 10_000
const maxAttempts = 3
const maxSockets = 100

/** A range outside of a blob is as absent as the blob: nobody asks for one unless the blob is damaged. */
const absentErrors = new Set(['NoSuchKey', 'NoSuchUpload', 'InvalidRange'])

/** What servers say when they have no room, or the account's quota is used up. */
const fullErrors = new Set([
  'QuotaExceeded',
  'XMinioStorageFull',
  'XMinioAdminBucketQuotaExceeded',
  'InsufficientCapacity',
  'InsufficientStorage',
  'EntityTooLarge',
])

type Send<T> = (client: S3Client, options: { abortSignal: AbortSignal }) => Promise<T>

export class S3Connection {
  readonly bucket: string
  readonly #client: S3Client

  constructor({ endpoint, region, bucket, pathStyle, accessKeyId, secretAccessKey }: Omit<S3Settings, 'prefix'>) {
    this.bucket = bucket
    this.#client = new S3Client({
      ...(endpoint === undefined ? {} : { endpoint }),
      region,
      forcePathStyle: pathStyle,
      credentials: { accessKeyId, secretAccessKey },
      maxAttempts: maxAttempts,
      // Newer checksums are not known to every server; the signature covers the bytes of each request anyway.
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: {
        connectionTimeout: connectMilliseconds,
        httpAgent: { keepAlive: true, maxSockets: maxSockets },
        httpsAgent: { keepAlive: true, maxSockets: maxSockets },
        socketAcquisitionWarningTimeout: requestMilliseconds,
      },
    })
  }

  /**
   * One request; the deadline is that of its answer's head, a body that streams may take longer.
   * @throws RuntimeError STORAGE_FULL, STORAGE_UNAVAILABLE
   */
  async send<T>(work: Send<T>, signal?: AbortSignal): Promise<T> {
    const response = await this.find(work, signal)
    if (response === undefined)
      throw new RuntimeError('STORAGE_UNAVAILABLE', 'the storage does not answer as it should')
    return response
  }

  /** The same; undefined when the server has no such key, upload or range. */
  async find<T>(work: Send<T>, signal?: AbortSignal): Promise<T | undefined> {
    const late = new AbortController()
    const timer = setTimeout(
      () => late.abort(new Error(`no answer within ${requestMilliseconds} ms`)),
      requestMilliseconds,
    )
    try {
      return await work(this.#client, {
        abortSignal: signal === undefined ? late.signal : AbortSignal.any([late.signal, signal]),
      })
    } catch (cause) {
      if (cause instanceof S3ServiceException && absentErrors.has(cause.name)) return undefined
      throw storageError(cause)
    } finally {
      clearTimeout(timer)
    }
  }

  close(): void {
    this.#client.destroy()
  }
}

/** Whatever else the server said, it is a matter of the operator's: the caller can only come again. */
export function storageError(cause: unknown): RuntimeError {
  if (cause instanceof RuntimeError) return cause
  if (cause instanceof S3ServiceException && (fullErrors.has(cause.name) || cause.$metadata.httpStatusCode === 507)) {
    return new RuntimeError('STORAGE_FULL', 'the storage has no room left', { cause })
  }
  return new RuntimeError('STORAGE_UNAVAILABLE', 'the storage can not be reached now', { cause })
}
