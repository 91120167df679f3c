// Checks the public keys that an operator registers for a tenant's tokens (RFC 7517). Pure.
import { createPublicKey, type KeyObject } from 'node:crypto'
import type { PublicKey } from '@tenantry/contract'
import { ControlError } from '../platform/errors.ts'

/** Maximum number of public keys of a tenant. */
export const maxPublicKeys = 8
const maxKeyLength = 4_096
const [minRsaBits, maxRsaBits] = [2_048, 4_096]

/** The members of each type of key, and the only algorithm that it has. */
const types: Record<string, { alg: PublicKey['alg']; crv?: string; members: readonly ('n' | 'e' | 'x' | 'y')[] }> = {
  RSA: { alg: 'RS256', members: ['n', 'e'] },
  EC: { alg: 'ES256', crv: 'P-256', members: ['x', 'y'] },
  OKP: { alg: 'EdDSA', crv: 'Ed25519', members: ['x'] },
}
const privateMembers = ['d', 'p', 'q', 'dp', 'dq', 'qi', 'oth', 'k']

type Jwk = Readonly<Record<string, unknown>>

/**
 * Returns the keys with the members that verification needs. Other public members, such as certificates, are dropped.
 * @throws ControlError INVALID_FIELD
 */
export function readJwks(keys: readonly Jwk[]): PublicKey[] {
  const read = keys.map(readKey)
  const kids = read.map(({ kid }) => kid)
  const again = kids.findIndex((kid, at) => kids.indexOf(kid) !== at)
  if (again !== -1) throw invalid(again, 'kid', kids[again], 'a "kid" that no other key has')
  return read
}

function readKey(jwk: Jwk, at: number): PublicKey {
  if (JSON.stringify(jwk).length > maxKeyLength)
    throw new ControlError('INVALID_FIELD', `Field "keys[${at}]" is longer than ${maxKeyLength} characters as JSON.`)
  const secret = privateMembers.find((name) => name in jwk)
  if (secret !== undefined)
    throw new ControlError(
      'INVALID_FIELD',
      `Field "keys[${at}].${secret}" belongs to a private or symmetric key. Allowed: public keys.`,
    )
  const { kid, kty } = jwk
  if (typeof kid !== 'string' || !/^[\x21-\x7e]{1,100}$/.test(kid))
    throw invalid(at, 'kid', kid, '1 to 100 visible ASCII characters')
  const type = typeof kty === 'string' && Object.hasOwn(types, kty) ? types[kty] : undefined
  if (typeof kty !== 'string' || type === undefined) throw invalid(at, 'kty', kty, Object.keys(types).join(', '))
  const fixed = { alg: type.alg, crv: type.crv, use: 'sig' } as const
  for (const name of ['alg', 'crv', 'use'] as const) {
    const allowed = fixed[name]
    const isRequired = name === 'crv' && allowed !== undefined
    if (allowed === undefined || (jwk[name] === undefined && !isRequired)) continue
    if (jwk[name] !== allowed) throw invalid(at, name, jwk[name], `${allowed} for a key of type ${kty}`)
  }
  if (jwk['key_ops'] !== undefined && !(Array.isArray(jwk['key_ops']) && jwk['key_ops'].includes('verify')))
    throw invalid(at, 'key_ops', jwk['key_ops'], 'a list with "verify"')
  const members = Object.fromEntries(
    type.members.map((name) => {
      const value = jwk[name]
      if (typeof value !== 'string' || value === '' || Buffer.from(value, 'base64url').toString('base64url') !== value)
        throw invalid(at, name, value, 'base64url without padding')
      return [name, value]
    }),
  )
  const key: PublicKey = { kid, kty, alg: type.alg, ...(type.crv === undefined ? {} : { crv: type.crv }), ...members }
  checkNumbers(key, at)
  return key
}

/** Checks that the numbers are a key, and that it has a size that is allowed. */
function checkNumbers({ kid: _kid, alg: _alg, ...jwk }: PublicKey, at: number): void {
  if (jwk.kty === 'RSA' && jwk.e !== 'AQAB') throw invalid(at, 'e', jwk.e, 'AQAB (65537)')
  let key: KeyObject
  try {
    key = createPublicKey({ key: jwk, format: 'jwk' })
  } catch (cause) {
    throw new ControlError('INVALID_FIELD', `Field "keys[${at}]" is not a valid public key of type ${jwk.kty}.`, {
      cause,
    })
  }
  const bits = key.asymmetricKeyDetails?.modulusLength
  if (bits !== undefined && (bits < minRsaBits || bits > maxRsaBits))
    throw new ControlError(
      'INVALID_FIELD',
      `Field "keys[${at}].n" has ${bits} bits. Allowed: ${minRsaBits} to ${maxRsaBits}.`,
    )
}

function invalid(at: number, name: string, value: unknown, allowed: string): ControlError {
  const shown = value === undefined ? 'missing' : JSON.stringify(value).slice(0, 100)
  return new ControlError('INVALID_FIELD', `Field "keys[${at}].${name}" is ${shown}. Allowed: ${allowed}.`)
}
