// Signatures of requests to an S3 server (AWS Signature Version 4). Pure.
import { createHash, createHmac, timingSafeEqual } from 'node:crypto'

/** A request as its signature covers it. */
export interface SignedRequest {
  method: string
  /** Path and query, encoded as they are sent. */
  url: string
  /** The signed headers, by their names in lower case. */
  headers: Readonly<Record<string, string>>
  /** Value of `x-amz-content-sha256`. */
  payloadHash: string
  /** `YYYYMMDDTHHMMSSZ`. */
  time: string
  region: string
}

const algorithm = 'AWS4-HMAC-SHA256'

/** Returns the `Authorization` header of a request. */
export function authorizationOf(request: SignedRequest, accessKeyId: string, secretKey: string): string {
  const names = Object.keys(request.headers).sort().join(';')
  return `${algorithm} Credential=${accessKeyId}/${scopeOf(request)}, SignedHeaders=${names}, Signature=${signatureOf(request, secretKey)}`
}

/** Checks a signature in constant time. */
export function isSignature(request: SignedRequest, secretKey: string, given: string): boolean {
  const [expected, received] = [signatureOf(request, secretKey), given].map((text) => Buffer.from(text))
  return expected !== undefined && received?.length === expected.length && timingSafeEqual(expected, received)
}

function scopeOf({ time, region }: SignedRequest): string {
  return `${time.slice(0, 8)}/${region}/s3/aws4_request`
}

function signatureOf(request: SignedRequest, secretKey: string): string {
  const { method, url, headers, payloadHash, time, region } = request
  const [path = '', query = ''] = url.split('?')
  const names = Object.keys(headers).sort()
  const canonical = [
    method,
    path,
    canonicalQuery(query),
    ...names.map((name) => `${name}:${(headers[name] ?? '').trim().replaceAll(/ +/g, ' ')}`),
    '',
    names.join(';'),
    payloadHash,
  ].join('\n')
  const text = [algorithm, time, scopeOf(request), createHash('sha256').update(canonical).digest('hex')].join('\n')
  const hmac = (key: string | Buffer, data: string) => createHmac('sha256', key).update(data).digest()
  const key = [time.slice(0, 8), region, 's3', 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secretKey}`)
  return createHmac('sha256', key).update(text).digest('hex')
}

function canonicalQuery(query: string): string {
  const pairs = query
    .split('&')
    .filter((pair) => pair !== '')
    .map((pair) => (pair.includes('=') ? pair : `${pair}=`))
  return pairs.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0)).join('&')
}
