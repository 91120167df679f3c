// Sends requests to one bucket of an S3 server, with a deadline and few retries.
import type { Agent } from 'node:http'
import type { Agent as TlsAgent } from 'node:https'
import { S3Client, S3ServiceException } from '@aws-sdk/client-s3'

/** Names the server, the bucket and the access key of the objects. */
export interface S3Location {
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

/** Contains what differs between the users of a connection. */
export interface S3Options {
  /** Maps any failure to the error that is thrown; an error that it has returned stays. */
  errorOf: (cause: unknown) => Error
  /** The connections to the server; by default direct ones. */
  agents?: { httpAgent: Agent; httpsAgent: TlsAgent } | undefined
}

/** Deadline of a request with its retries, in addition to the time for the bytes that it uploads. */
const requestMilliseconds = 30_000
/** The lowest rate of an upload, in bytes for each millisecond: 64 KB/s. */
const minBytesPerMillisecond = 64
const connectMilliseconds = 10_000
const maxAttempts = 3
const maxSockets = 100

/** Errors for missing data. A range outside of an object counts as missing: it is only requested if the object is damaged. */
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

/** A client for one bucket. */
export class S3Connection {
  /** The bucket's name. */
  readonly bucket: string
  /** Maps any failure to the error that is thrown. */
  readonly errorOf: S3Options['errorOf']
  readonly #client: S3Client

  /** Creates the client. It connects with the first request. */
  constructor(location: Omit<S3Location, 'prefix'>, { errorOf, agents }: S3Options) {
    const { endpoint, region, bucket, pathStyle, accessKeyId, secretAccessKey } = location
    this.bucket = bucket
    this.errorOf = errorOf
    const direct = { keepAlive: true, maxSockets }
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
        ...(agents ?? { httpAgent: direct, httpsAgent: direct }),
        socketAcquisitionWarningTimeout: requestMilliseconds,
      },
    })
  }

  /**
   * Sends a request. The deadline applies to the head of the response; a streamed body may take longer.
   * @param uploadedBytes the length of the request's body, for which the deadline is extended
   * @throws the error of `errorOf`
   */
  async send<T>(work: Send<T>, signal?: AbortSignal, uploadedBytes = 0): Promise<T> {
    const response = await this.find(work, signal, uploadedBytes)
    if (response === undefined) throw this.errorOf(new Error('The S3 server returned an invalid response.'))
    return response
  }

  /**
   * Sends a request. @returns undefined if the server has no such key, upload or range
   * @throws the error of `errorOf`
   */
  async find<T>(work: Send<T>, signal?: AbortSignal, uploadedBytes = 0): Promise<T | undefined> {
    const late = new AbortController()
    const milliseconds = requestMilliseconds + Math.ceil(uploadedBytes / minBytesPerMillisecond)
    const timer = setTimeout(
      () => late.abort(new Error(`The S3 server did not respond within ${milliseconds} ms.`)),
      milliseconds,
    )
    try {
      return await work(this.#client, {
        abortSignal: signal === undefined ? late.signal : AbortSignal.any([late.signal, signal]),
      })
    } catch (cause) {
      if (cause instanceof S3ServiceException && absentErrors.has(cause.name)) return undefined
      throw this.errorOf(cause)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Ends the connections. */
  close(): void {
    this.#client.destroy()
  }
}

/** Whether the server has no room left, or the quota of the account is used up. */
export function isFullServer(cause: unknown): boolean {
  return cause instanceof S3ServiceException && (fullErrors.has(cause.name) || cause.$metadata.httpStatusCode === 507)
}
