// The texts that authenticate callers. Each has 256 random bits; only its SHA-256 is stored.
import { createHash, randomBytes } from 'node:crypto'

export const platformKeyPrefix = 'tnp_'

/** Creates a random platform key: `tnp_` and 256 bits in base64url. */
export function newPlatformKey(): string {
  return `${platformKeyPrefix}${randomBytes(32).toString('base64url')}`
}

/** Creates a random API key of a tenant: `tn_publishable_` or `tn_secret_` and 256 bits in base64url. */
export function newApiKey(kind: 'publishable' | 'secret'): string {
  return `tn_${kind}_${randomBytes(32).toString('base64url')}`
}

/** Returns the begin of a tenant's API key, with the first four of its random characters, which distinguishes it from others. */
export function apiKeyPrefix(key: string): string {
  return key.replace(/^(tn_[a-z]+_.{4}).*$/s, '$1')
}

/** Creates a random text for JWT secrets, the signing secret and passwords. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

/** Returns the SHA-256 in lower-case hexadecimal. A random key of 256 bits needs no slow hash. */
export function keyHash(key: string): string {
  return createHash('sha256').update(key).digest('hex')
}
