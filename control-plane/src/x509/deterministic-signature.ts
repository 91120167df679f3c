// Signs with ECDSA on the curve P-256 so that the signature follows from key and data (RFC 6979). Node's own signatures contain a
// random number, so they differ each time. Pure.
import { createECDH, createHash, createHmac } from 'node:crypto'
import { sequence, unsignedInteger } from './der.ts'

/** Order of the group of points of P-256 (FIPS 186-4, D.1.2.3). Private keys are less. */
export const groupOrder = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n

/** Number of bytes of a private key, and of a coordinate. */
export const scalarBytes = 32

/**
 * Signs data with ECDSA and SHA-256.
 * @param privateKey number of 32 bytes, from 1 to the order less 1
 * @returns the signature in DER
 */
export function signDeterministically(privateKey: Buffer, data: Uint8Array): Buffer {
  const digest = createHash('sha256').update(data).digest()
  for (const nonce of nonces(privateKey, digest)) {
    const point = createECDH('prime256v1')
    point.setPrivateKey(toBytes(nonce))
    const r = toNumber(point.getPublicKey().subarray(1, 1 + scalarBytes)) % groupOrder
    const s = (inverse(nonce) * (toNumber(digest) + r * toNumber(privateKey))) % groupOrder
    if (r !== 0n && s !== 0n) return sequence(unsignedInteger(toBytes(r)), unsignedInteger(toBytes(s)))
  }
  throw new RangeError('No number is valid for this signature.')
}

/** Returns the candidates for the secret number of a signature (RFC 6979, 3.2). Nearly always, the first is valid. */
function* nonces(privateKey: Buffer, digest: Buffer): Generator<bigint, void> {
  const message = Buffer.concat([privateKey, toBytes(toNumber(digest) % groupOrder)])
  let [key, value] = [Buffer.alloc(32, 0), Buffer.alloc(32, 1)]
  const update = (separator: number, more: Uint8Array) => {
    key = hmac(key, value, Buffer.of(separator), more)
    value = hmac(key, value)
  }
  update(0, message)
  update(1, message)
  for (;;) {
    value = hmac(key, value)
    const candidate = toNumber(value)
    if (candidate > 0n && candidate < groupOrder) yield candidate
    update(0, Buffer.alloc(0))
  }
}

function hmac(key: Buffer, ...parts: readonly Uint8Array[]): Buffer<ArrayBuffer> {
  const state = createHmac('sha256', key)
  for (const part of parts) state.update(part)
  return Buffer.from(state.digest())
}

/** Returns the inverse modulo the order, which is a prime number (Fermat). */
function inverse(number: bigint): bigint {
  let [result, base] = [1n, number % groupOrder]
  for (let exponent = groupOrder - 2n; exponent > 0n; exponent >>= 1n) {
    if ((exponent & 1n) === 1n) result = (result * base) % groupOrder
    base = (base * base) % groupOrder
  }
  return result
}

/** Returns a number from bytes, the highest first. */
export function toNumber(bytes: Uint8Array): bigint {
  return BigInt(`0x${Buffer.from(bytes).toString('hex')}`)
}

/** Returns the 32 bytes of a number, the highest first. */
export function toBytes(number: bigint): Buffer {
  return Buffer.from(number.toString(16).padStart(2 * scalarBytes, '0'), 'hex')
}
