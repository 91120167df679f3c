// The storage relay: tenants' own runtimes reach their files in the region's bucket through it. It checks that a request is signed with
// the tenant's token and concerns only the tenant's files, and signs it with the bucket's key, which no tenant's container has.
import {
  createServer,
  request as requestHttp,
  Agent,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { Agent as TlsAgent, request as requestHttps } from 'node:https'
import { pipeline } from 'node:stream/promises'
import { acceptedTokens, isTenantId, tenantToken, type InternalToken } from '@tenantry/contract'
import { authorizationOf, isSignature, type SignedRequest } from './signature.ts'
import { isTenantsRequest, type BucketPart } from './tenants-request.ts'

/** The region's bucket and its access key. */
export interface RelayedBucket extends BucketPart {
  /** URL of the S3 server. */
  endpoint: URL
  region: string
  /** Whether the bucket is part of the path, and not of the host name. */
  isPathStyle: boolean
  accessKeyId: string
  secretAccessKey: string
}

/** The limits of the storage relay. */
export interface StorageRelayLimits {
  /** The maximum number of simultaneous requests, and of those of one tenant. */
  storageRequests: number
  storageRequestsPerTenant: number
  /** The milliseconds without any byte after which a request ends. */
  storageIdleTimeout: number
}

interface StorageRelayOptions {
  bucket: RelayedBucket
  internalToken: InternalToken
  limits: StorageRelayLimits
  /** Returns the current time in milliseconds since 1970. */
  now: () => number
  /** Called when a tenant's request was rejected because it is about other files. */
  onRejected: (tenantId: string) => void
}

/** Maximum difference between a request's time and this host's clock. */
const maxSkewMilliseconds = 15 * 60_000
/** The header `Authorization` of a request that a tenant's token has signed. */
const signedBy = new RegExp(
  '^AWS4-HMAC-SHA256 Credential=(t_[0-9a-f]{20})/(\\d{8})/([a-zA-Z0-9-]{1,64})/s3/aws4_request, *' +
    'SignedHeaders=([a-z0-9;-]{1,1000}), *Signature=([0-9a-f]{64})$',
)
/** The headers that are passed on, in addition to what is signed. */
const passedHeaders: ReadonlySet<string> = new Set([
  'content-length',
  'content-md5',
  'content-type',
  'transfer-encoding',
  'range',
  'if-match',
  'if-none-match',
])

/** The storage relay of a gateway. */
export class StorageRelay {
  readonly server: Server
  readonly #options: StorageRelayOptions
  readonly #agent: Agent
  readonly #open = new Map<string, number>()

  constructor(options: StorageRelayOptions) {
    this.#options = options
    const { storageRequests, storageIdleTimeout } = options.limits
    const isTls = options.bucket.endpoint.protocol === 'https:'
    this.#agent = new (isTls ? TlsAgent : Agent)({ keepAlive: true, maxSockets: storageRequests })
    // A large upload may take long, so only its silence is limited.
    this.server = createServer({ requestTimeout: 0, headersTimeout: 5_000 }, (request, response) => {
      void this.#serve(request, response)
    })
    this.server.timeout = storageIdleTimeout
  }

  /** Ends all requests, and accepts no further ones. */
  close(): void {
    this.server.close()
    this.server.closeAllConnections()
    this.#agent.destroy()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const tenantId = this.#tenantOf(request)
    if (tenantId === undefined) {
      reject(response, 403, 'SignatureDoesNotMatch')
      return
    }
    const { bucket, limits, onRejected } = this.#options
    const { method = '', url = '', headers } = request
    if (!isTenantsRequest({ method, url, headers }, bucket, tenantId)) {
      onRejected(tenantId)
      reject(response, 403, 'AccessDenied')
      return
    }
    const own = this.#open.get(tenantId) ?? 0
    const all = [...this.#open.values()].reduce((sum, count) => sum + count, 0)
    if (own >= limits.storageRequestsPerTenant || all >= limits.storageRequests) {
      reject(response, 503, 'SlowDown')
      return
    }
    this.#open.set(tenantId, own + 1)
    try {
      await this.#forward(request, response)
    } catch {
      if (response.headersSent) response.destroy()
      else reject(response, 503, 'ServiceUnavailable')
    } finally {
      const left = (this.#open.get(tenantId) ?? 1) - 1
      if (left === 0) this.#open.delete(tenantId)
      else this.#open.set(tenantId, left)
    }
  }

  /** Returns the tenant whose token has signed a request; undefined if none has. */
  #tenantOf(request: IncomingMessage): string | undefined {
    const found = signedBy.exec(request.headers.authorization ?? '')
    const [, tenantId = '', date = '', region = '', names = '', signature = ''] = found ?? []
    const time = textOf(request.headers['x-amz-date'])
    if (!isTenantId(tenantId) || !time.startsWith(date) || !this.#isCurrent(time)) return undefined
    const headers = Object.fromEntries(names.split(';').map((name) => [name, textOf(request.headers[name])]))
    // What selects or describes the files must be signed.
    if (!('host' in headers && 'x-amz-date' in headers && 'x-amz-content-sha256' in headers)) return undefined
    const signed: SignedRequest = {
      method: request.method ?? '',
      url: request.url ?? '',
      headers,
      payloadHash: textOf(request.headers['x-amz-content-sha256']),
      time,
      region,
    }
    const tokens = acceptedTokens(this.#options.internalToken).map((token) => tenantToken(token, tenantId))
    return tokens.some((token) => isSignature(signed, token, signature)) ? tenantId : undefined
  }

  #isCurrent(time: string): boolean {
    const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(time) ?? []
    const at = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
    return Math.abs(at - this.#options.now()) <= maxSkewMilliseconds
  }

  async #forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { bucket, now } = this.#options
    const { endpoint, isPathStyle } = bucket
    const path = isPathStyle ? (request.url ?? '') : (request.url ?? '').slice(`/${bucket.bucket}`.length)
    const host = isPathStyle ? endpoint.host : `${bucket.bucket}.${endpoint.host}`
    const url = path.startsWith('/') ? path : `/${path}`
    const time = new Date(now()).toISOString().replace(/[-:]|\.\d{3}/g, '')
    const passed = Object.fromEntries(Object.entries(request.headers).filter(([name]) => passedHeaders.has(name)))
    const payloadHash = textOf(request.headers['x-amz-content-sha256'])
    const headers = { host, 'x-amz-content-sha256': payloadHash, 'x-amz-date': time }
    const method = request.method ?? ''
    const authorization = authorizationOf(
      { method, url, headers, payloadHash, time, region: bucket.region },
      bucket.accessKeyId,
      bucket.secretAccessKey,
    )
    const send = endpoint.protocol === 'https:' ? requestHttps : requestHttp
    const [hostname, port] = [isPathStyle ? endpoint.hostname : `${bucket.bucket}.${endpoint.hostname}`, endpoint.port]
    const onward = send({
      hostname,
      ...(port === '' ? {} : { port }),
      path: url,
      method,
      headers: { ...passed, ...headers, authorization },
      agent: this.#agent,
      timeout: this.#options.limits.storageIdleTimeout,
    })
    onward.on('timeout', () => onward.destroy(new Error('The S3 server did not respond in time.')))
    response.once('close', () => {
      if (!response.writableFinished) onward.destroy()
    })
    const responded = new Promise<IncomingMessage>((resolve, reject) => {
      onward.once('response', resolve)
      onward.on('error', reject)
    })
    const [upstream] = await Promise.all([responded, pipeline(request, onward)])
    const { connection: _connection, 'keep-alive': _keepAlive, ...rest } = upstream.headers
    response.writeHead(upstream.statusCode ?? 502, rest)
    await pipeline(upstream, response)
  }
}

/** Responds with an error in S3's form. */
function reject(response: ServerResponse, status: number, code: string): void {
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code></Error>`
  response.writeHead(status, { 'content-type': 'application/xml', connection: 'close' }).end(body)
}

function textOf(header: string | string[] | undefined): string {
  return typeof header === 'string' ? header : ''
}
