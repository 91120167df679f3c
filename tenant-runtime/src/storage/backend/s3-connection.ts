// Sends requests to one bucket of an S3 server, with a deadline and few retries, and maps failures to storage errors.
import { S3Client, S3ServiceException } from '@aws-sdk/client-s3'
import { RuntimeError } from '../../errors.ts'

export interface S3Settings {
  /** The server's URL; undefined for the region's AWS endpoint. */
  endpoint: string | undefined
  region: string
  bucket: string
  /** Prefix of every key; empty, or with a slash at its end. */
  prefix: string
  /** Whether URLs have the bucket's name in the path instead of the host. */
  pathStyle: boolean
  accessKeyId: string
  secretAccessKey: string
}

/** Deadline of a request with its retries, including the bytes of an uploaded part. */
const requestMilliseconds = 30_000
const connectMilliseconds = 10_000
const maxAttempts = 3
const maxSockets = 100

/** Errors for missing data. A range outside of a blob counts as missing: it is only requested if the blob is damaged. */
const absentErrors = new Set(['NoSuchKey', 'NoSuchUpload', 'InvalidRange'])

/** Errors of servers that have no room, or whose quota for the account is used up. */
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
   * Sends a request. The deadline applies to the head of the response; a streamed body may take longer.
   * @throws RuntimeError STORAGE_FULL, STORAGE_UNAVAILABLE
   */
  async send<T>(work: Send<T>, signal?: AbortSignal): Promise<T> {
    const response = await this.find(work, signal)
    if (response === undefined)
      throw new RuntimeError('STORAGE_UNAVAILABLE', 'The storage returned an invalid response.')
    return response
  }

  /**
   * Sends a request. @returns undefined if the server has no such key, upload or range
   * @throws RuntimeError STORAGE_FULL, STORAGE_UNAVAILABLE
   */
  async find<T>(work: Send<T>, signal?: AbortSignal): Promise<T | undefined> {
    const late = new AbortController()
    const timer = setTimeout(
      () => late.abort(new Error(`The storage did not respond within ${requestMilliseconds} ms.`)),
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

/** Maps any failure to a storage error. The operator finds the cause in the log; a client can only retry. */
export function storageError(cause: unknown): RuntimeError {
  if (cause instanceof RuntimeError) return cause
  if (cause instanceof S3ServiceException && (fullErrors.has(cause.name) || cause.$metadata.httpStatusCode === 507)) {
    return new RuntimeError('STORAGE_FULL', 'The storage has no room left.', { cause })
  }
  return new RuntimeError('STORAGE_UNAVAILABLE', 'The storage can not be reached now.', { cause })
}
