// A key and a certificate that follow from a secret, so that they need not be stored, and never change. Pure.
import { createHash, createPrivateKey, createPublicKey, hkdfSync } from 'node:crypto'
import { ownServerCertificate } from './certificate.ts'
import { objectIdentifier, octetString, sequence, unsignedInteger } from './der.ts'

/** A certificate, and its private key. Both are PEM. */
export interface DerivedCertificate {
  certificate: string
  privateKey: string
}

interface DerivedInput {
  /** Secret from which the key is derived. */
  seed: string
  /** Distinguishes the keys of one secret. */
  purpose: string
  /** The common name, of at most 64 characters. */
  name: string
  /** Host names of the server. */
  hosts: readonly string[]
}

/** A fixed time: the same input has the same certificate, whenever it is made. */
const notBefore = new Date('2020-01-01T00:00:00Z')
/** The time of certificates without an end (RFC 5280, 4.1.2.5). */
const notAfter = new Date('9999-12-31T23:59:59Z')
/** Number of bytes of a private key of Ed25519: any are one. */
const keyBytes = 32
const ed25519 = '1.3.101.112'

/**
 * Returns the key and the certificate of a server that signs its own. The same input has the same result, because signatures of Ed25519
 * contain no random number.
 */
export function derivedCertificate({ seed, purpose, name, hosts }: DerivedInput): DerivedCertificate {
  const secret = Buffer.from(hkdfSync('sha256', seed, '', purpose, keyBytes))
  // The form PKCS #8 (RFC 8410, 7).
  const key = sequence(
    unsignedInteger(Buffer.of(0)),
    sequence(objectIdentifier(ed25519)),
    octetString(octetString(secret)),
  )
  const privateKey = createPrivateKey({ key, format: 'der', type: 'pkcs8' })
  const publicKey = createPublicKey(privateKey)
  const serial = serialOf(publicKey.export({ type: 'spki', format: 'der' }))
  const certificate = ownServerCertificate({ name, hosts, publicKey, privateKey, serial, notBefore, notAfter })
  return { certificate, privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) }
}

/** Returns a serial number of 16 bytes, which is positive. */
function serialOf(publicKey: Uint8Array): Buffer {
  const serial = createHash('sha256').update(publicKey).digest().subarray(0, 16)
  serial.writeUInt8((serial.readUInt8(0) & 0x3f) | 0x40, 0)
  return serial
}
