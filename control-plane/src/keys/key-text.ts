// The texts that prove who calls. Each is 256 random bits; what is stored is their SHA-256.
import { createHash, randomBytes } from 'node:crypto'

export const platformKeyPrefix = 'tnp_'

/** A new random platform key, `tnp_` and 256 bits in base64url. */
export function newPlatformKey(): string {
  return `${platformKeyPrefix}${randomBytes(32).toString('base64url')}`
}

/** A new random API key of a tenant, `tn_publishable_` or `tn_secret_` and 256 bits in base64url. */
export function newApiKey(kind: 'publishable' | 'secret'): string {
  return `tn_${kind}_${randomBytes(32).toString('base64url')}`
}

/** For JWT secrets, the signing secret and passwords. */
export function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

/** Lower-case hex SHA-256. A random key of 256 bits needs no slow hash. */
export function keyHash(key: string): string {
  return createHash('sha256').update(key).digest('hex')
}
