// Tokens of signed URLs: an HMAC-SHA256 over all claims. Pure.
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { TenantManifest } from '@tenantry/contract'
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import { RuntimeError } from '../../errors.ts'
import type { Bucket } from '../buckets/bucket.ts'

const Claims = Type.Object(
  {
    v: Type.Literal(1),
    /** The operation that the token allows. */
    scope: Type.Enum(['read', 'upload']),
    tenant: Type.String(),
    /** The bucket's id, so that the URLs of a deleted bucket do not work for a new one of its name. */
    bucket: Type.String(),
    /** The bucket's signing version. Tokens from before it was introduced have none, and count as version 1. */
    version: Type.Optional(Type.Integer()),
    path: Type.String(),
    /** Unix seconds. */
    expires: Type.Integer(),
    upsert: Type.Boolean(),
    /** The user on whose behalf the upload is made; null for the service role. */
    owner: Type.Union([Type.String(), Type.Null()]),
    /** Whether an anonymous caller signed it, so that it is valid only while the bucket is public. */
    anonymous: Type.Optional(Type.Literal(true)),
  },
  { additionalProperties: false },
)
export type Claims = Static<typeof Claims>

export function signClaims(claims: Claims & { version: number }, signingSecret: string): string {
  const payload = Buffer.from(JSON.stringify(claims)).toString('base64url')
  return `${payload}.${mac(payload, signingSecret).toString('base64url')}`
}

type SigningSecrets = Pick<TenantManifest, 'signing_secret' | 'former_signing_secrets'>

interface TokenUse {
  scope: Claims['scope']
  tenant: string
  path: string
  /** Unix seconds. */
  now: number
  /** The URL's `expires` parameter, if it has one. */
  expires: string | undefined
}

/** Returns the secrets with which a tenant's tokens are valid. @param now milliseconds since the epoch */
export function validSecrets({ signing_secret, former_signing_secrets = [] }: SigningSecrets, now: number): string[] {
  const former = former_signing_secrets.filter(({ expires_at }) => Date.parse(expires_at) > now)
  return [signing_secret, ...former.map(({ secret }) => secret)]
}

/**
 * Verifies a token and returns its claims. The caller must check the bucket with `requireBucket`.
 * @throws RuntimeError InvalidSignature, ExpiredToken
 */
export function readToken(token: string, signingSecrets: readonly string[], use: TokenUse): Claims {
  const [payload = '', given = '', ...rest] = token.split('.')
  const signature = Buffer.from(given, 'base64url')
  const isSigned = signingSecrets.some((secret) => {
    const wanted = mac(payload, secret)
    return signature.length === wanted.length && timingSafeEqual(signature, wanted)
  })
  if (rest.length > 0 || !isSigned) throw invalid()
  // The spare bits of base64's last letter would allow several texts for the same signature.
  if (signature.toString('base64url') !== given) throw invalid()
  const claims = parse(payload)
  if (!Value.Check(Claims, claims)) throw invalid()
  if (claims.scope !== use.scope || claims.tenant !== use.tenant || claims.path !== use.path) throw invalid()
  if (use.expires !== undefined && use.expires !== String(claims.expires)) throw invalid()
  if (claims.expires <= use.now) throw new RuntimeError('ExpiredToken', 'The signed URL has expired.')
  return claims
}

/**
 * Checks the bucket of a token.
 * @throws RuntimeError InvalidSignature if the token is for another bucket or was revoked; ExpiredToken if an anonymous
 *   caller signed it and the bucket is no longer public
 */
export function requireBucket(claims: Claims, bucket: Pick<Bucket, 'id' | 'signingVersion' | 'policy'>): void {
  if (claims.bucket !== bucket.id || (claims.version ?? 1) !== bucket.signingVersion) throw invalid()
  if (claims.anonymous === true && bucket.policy !== 'public')
    throw new RuntimeError('ExpiredToken', "The signed URL has expired, because the bucket's policy has changed.")
}

function invalid(): RuntimeError {
  return new RuntimeError('InvalidSignature', 'The signature of the URL is not valid.')
}

/** Parses a payload. @returns undefined if it is not valid JSON */
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
