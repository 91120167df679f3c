// A key and a certificate that follow from a secret, so that they need not be stored, and never change. Pure.
import { createECDH, createHash, createPrivateKey, createPublicKey, hkdfSync } from 'node:crypto'
import { ownServerCertificate } from './certificate.ts'
import { groupOrder, scalarBytes, signDeterministically, toBytes, toNumber } from './deterministic-signature.ts'

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
/** More bytes than the key has, so that each key is equally probable (FIPS 186-4, B.4.1). */
const seedBytes = scalarBytes + 8

/** Returns the key and the certificate of a server that signs its own. The same input has the same result. */
export function derivedCertificate({ seed, purpose, name, hosts }: DerivedInput): DerivedCertificate {
  const random = toNumber(Buffer.from(hkdfSync('sha256', seed, '', purpose, seedBytes)))
  const scalar = toBytes((random % (groupOrder - 1n)) + 1n)
  const point = createECDH('prime256v1')
  point.setPrivateKey(scalar)
  const coordinates = point.getPublicKey().subarray(1)
  const part = (from: number) => coordinates.subarray(from, from + scalarBytes).toString('base64url')
  const privateKey = createPrivateKey({
    format: 'jwk',
    key: { kty: 'EC', crv: 'P-256', d: scalar.toString('base64url'), x: part(0), y: part(scalarBytes) },
  })
  const certificate = ownServerCertificate({
    name,
    hosts,
    publicKey: createPublicKey(privateKey),
    serial: serialOf(coordinates),
    notBefore,
    notAfter,
    sign: (data) => signDeterministically(scalar, data),
  })
  return { certificate, privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) }
}

/** Returns a serial number of 16 bytes, which is positive. */
function serialOf(publicKey: Uint8Array): Buffer {
  const serial = createHash('sha256').update(publicKey).digest().subarray(0, 16)
  serial.writeUInt8((serial.readUInt8(0) & 0x3f) | 0x40, 0)
  return serial
}
