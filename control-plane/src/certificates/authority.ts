// The installation's own certificate authority. It signs the certificates with which gateways serve SQL clients.
import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto'
import type { KeyObject } from 'node:crypto'
import { ControlError } from '../platform/errors.ts'
import { authorityCertificate, serverCertificate } from '../x509/index.ts'

/** An authority: its certificate, and its private key. Both are PEM. */
export interface Authority {
  certificate: string
  privateKey: string
}

const hour = 3_600_000
const day = 24 * hour
/** Clients' clocks may be slow by as much. */
const slowClock = hour
const authorityYears = 20
/** A gateway requests a new certificate each hour, so that it survives a long outage of the control plane. */
const serverDays = 90
const serverName = 'Tenantry SQL'

/** Creates an authority. @param installation the name of the installation, which distinguishes the authorities of several */
export function newAuthority(installation: string, now: Date): Authority {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const notAfter = new Date(now)
  notAfter.setUTCFullYear(notAfter.getUTCFullYear() + authorityYears)
  const certificate = authorityCertificate({
    name: `Tenantry ${installation}`,
    publicKey,
    privateKey,
    serial: newSerial(),
    notBefore: new Date(now.getTime() - day),
    notAfter,
  })
  return { certificate, privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) }
}

/**
 * Issues the certificate of a server for 90 days.
 * @param hosts its host names and addresses
 * @returns the chain in PEM: the server's certificate, then the authority's
 */
export function issueCertificate(
  authority: Authority,
  publicKey: KeyObject,
  hosts: readonly string[],
  now: Date,
): string {
  const own = new X509Certificate(authority.certificate)
  const certificate = serverCertificate({
    name: serverName,
    publicKey,
    hosts,
    serial: newSerial(),
    notBefore: new Date(now.getTime() - slowClock),
    notAfter: new Date(Math.min(now.getTime() + serverDays * day, Date.parse(own.validTo))),
    issuer: {
      name: own.subject.replace(/^CN=/, ''),
      publicKey: own.publicKey,
      privateKey: createPrivateKey(authority.privateKey),
    },
  })
  return `${certificate}${authority.certificate}`
}

/** A certificate, and its private key. Both are PEM. */
export interface Issued {
  certificate: string
  privateKey: string
}

/**
 * Issues a key and a certificate for servers of the installation's own that are clients of each other, for as long as the
 * authority is valid.
 * @param name the common name
 * @param hosts their host names and addresses
 */
export function issuePeerCertificate(authority: Authority, name: string, hosts: readonly string[], now: Date): Issued {
  return issue(authority, name, hosts, true, now)
}

/**
 * Issues a key and a certificate for a server of the installation's own, for as long as the authority is valid. It cannot be used as a
 * client's.
 * @param name the common name
 * @param hosts its host names and addresses
 */
export function issueServerCertificate(
  authority: Authority,
  name: string,
  hosts: readonly string[],
  now: Date,
): Issued {
  return issue(authority, name, hosts, false, now)
}

function issue(authority: Authority, name: string, hosts: readonly string[], isClient: boolean, now: Date): Issued {
  const own = new X509Certificate(authority.certificate)
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const certificate = serverCertificate({
    name,
    publicKey,
    hosts,
    isClient,
    serial: newSerial(),
    notBefore: new Date(now.getTime() - slowClock),
    notAfter: new Date(own.validTo),
    issuer: {
      name: own.subject.replace(/^CN=/, ''),
      publicKey: own.publicKey,
      privateKey: createPrivateKey(authority.privateKey),
    },
  })
  return { certificate, privateKey: privateKey.export({ type: 'pkcs8', format: 'pem' }) }
}

/**
 * Reads a gateway's public key.
 * @param base64 the key as SPKI in DER, in base64
 * @throws ControlError INVALID_FIELD unless it is a key on the curve P-256
 */
export function readPublicKey(base64: string): KeyObject {
  const key = tryPublicKey(base64)
  if (key?.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return key
  throw new ControlError(
    'INVALID_FIELD',
    'Invalid value of "public_key". Allowed: a public key on the curve P-256, as SPKI in DER.',
  )
}

function tryPublicKey(base64: string): KeyObject | undefined {
  try {
    return createPublicKey({ key: Buffer.from(base64, 'base64'), format: 'der', type: 'spki' })
  } catch {
    return undefined
  }
}

function newSerial(): Buffer {
  const serial = randomBytes(16)
  // Positive, and of the same length each time.
  serial.writeUInt8((serial.readUInt8(0) & 0x3f) | 0x40, 0)
  return serial
}
