// Tokens of signed URLs: HMAC-SHA256 over everything that they allow. Pure.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { RuntimeError } from '../../errors.ts'

const Claims = Type.Object(
  {
    v: Type.Literal(1),
    /** What the holder may do: a download token is no upload token. */
    scope: Type.Enum(['read', 'upload']),
    tenant: Type.String(),
    /** The bucket's id: a bucket made anew under the name revives no URL. */
    bucket: Type.String(),
    /** The bucket's signing version. Tokens of before there was one are of the first. */
    version: Type.Optional(Type.Integer()),
    path: Type.String(),
    /** Unix seconds. */
    expires: Type.Integer(),
    upsert: Type.Boolean(),
    /** On whose behalf an upload is made; null for the service. */
    owner: Type.Union([Type.String(), Type.Null()]),
  },
  { additionalProperties: false },
)
export type Claims = Static<typeof Claims>

export function signClaims(claims: Claims & { version: number }, signingSecret: string): string {
  const payload = Buffer.from(JSON.stringify(claims)).toString('base64url')
  return `${payload}.${mac(payload, signingSecret).toString('base64url')}`
}

interface TokenUse {
  scope: Claims['scope']
  tenant: string
  path: string
  /** Unix seconds. */
  now: number
  /** The URL's own `expires`, when it has one. */
  expires: string | undefined
}

/**
 * The claims of a token that allows this use, if `requireBucket` agrees.
 * @throws RuntimeError InvalidSignature, ExpiredToken
 */
export function readToken(token: string, signingSecret: string, use: TokenUse): Claims {
  const [payload = '', given = '', ...rest] = token.split('.')
  const signature = Buffer.from(given, 'base64url')
  const wanted = mac(payload, signingSecret)
  if (rest.length > 0 || signature.length !== wanted.length || !timingSafeEqual(signature, wanted)) throw invalid()
  // Base64 has spare bits in its last letter, which would be other texts of the same bytes.
  if (signature.toString('base64url') !== given) throw invalid()
  const claims = parse(payload)
  if (!Value.Check(Claims, claims)) throw invalid()
  if (claims.scope !== use.scope || claims.tenant !== use.tenant || claims.path !== use.path) throw invalid()
  if (use.expires !== undefined && use.expires !== String(claims.expires)) throw invalid()
  if (claims.expires <= use.now) throw new RuntimeError('ExpiredToken', 'the signed URL has expired')
  return claims
}

/** @throws RuntimeError InvalidSignature when the token is for another bucket, or was revoked */
export function requireBucket(claims: Claims, bucket: { id: string; signingVersion: number }): void {
  if (claims.bucket !== bucket.id || (claims.version ?? 1) !== bucket.signingVersion) throw invalid()
}

function invalid(): RuntimeError {
  return new RuntimeError('InvalidSignature', 'the signature of the URL is not valid')
}

/** @returns undefined for what is no JSON */
function parse(payload: string): unknown {
  try {
    return JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'))
  } catch {
    return undefined
  }
}

function mac(payload: string, signingSecret: string): Buffer {
  return createHmac('sha256', signingSecret).update(`storage-url-v1:${payload}`).digest()
}
