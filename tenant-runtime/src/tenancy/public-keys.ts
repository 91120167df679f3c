// The public keys of a tenant's tokens: which one a token names, and its imported form.
import type { PublicKey, TenantManifest } from '@tenantry/contract'
import { decodeProtectedHeader, importJWK } from 'jose'

/**
 * Returns the public key that a token's header names; undefined if there is none. A token without a `kid` names the only
 * key of its algorithm.
 */
export function publicKeyOf({ jwks = [] }: TenantManifest, token: string): PublicKey | undefined {
  if (jwks.length === 0) return undefined
  const { alg, kid } = headerOf(token)
  const found = jwks.filter((key) => key.alg === alg && (kid === undefined || key.kid === kid))
  return found.length === 1 ? found[0] : undefined
}

const importedKeys = new WeakMap<PublicKey, Promise<CryptoKey>>()

/** Imports a key, once for each manifest. */
export function imported(publicKey: PublicKey): Promise<CryptoKey> {
  let importing = importedKeys.get(publicKey)
  if (importing === undefined) {
    importing = importPublic(publicKey)
    importedKeys.set(publicKey, importing)
  }
  return importing
}

async function importPublic({ alg, ...jwk }: PublicKey): Promise<CryptoKey> {
  const key = await importJWK(jwk, alg)
  if (key instanceof Uint8Array) throw new Error(`The key "${jwk.kid}" is not a public key.`)
  return key
}

function headerOf(token: string): { alg?: unknown; kid?: unknown } {
  try {
    return decodeProtectedHeader(token)
  } catch {
    return {}
  }
}
