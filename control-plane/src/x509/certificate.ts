// Creates X.509 certificates (RFC 5280): one of an authority and those that it signs for servers, with keys on the curve P-256, and those
// of servers that sign their own, with Ed25519. Node can read and verify certificates, but not create them. Pure.
import { createHash, sign, X509Certificate, type KeyObject } from 'node:crypto'
import { isIPv4, isIPv6 } from 'node:net'
import {
  bitString,
  boolean,
  explicit,
  implicit,
  objectIdentifier,
  octetString,
  sequence,
  setOfOne,
  time,
  unsignedInteger,
  utf8String,
} from './der.ts'

const identifiers = {
  commonName: '2.5.4.3',
  ecdsaWithSha256: '1.2.840.10045.4.3.2',
  ed25519: '1.3.101.112',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
} as const

/** Bits of the key usage, and how many bits of the byte are unused. */
const signsCertificatesAndLists = bitString(Buffer.of(0b0000_0110), 1)
const signsData = bitString(Buffer.of(0b1000_0000), 7)

/** Tags of the kinds of names in subjectAltName. */
const dnsName = 2
const ipAddress = 7

/** Bytes of a key itself, which are the end of the form SPKI: an uncompressed point of P-256, or a key of Ed25519. */
const keyBytes = { ec: 65, ed25519: 32 } as const

/** The part of a certificate that both kinds have. */
interface Common {
  /** The serial number, positive and of at most 20 bytes. */
  serial: Uint8Array
  notBefore: Date
  notAfter: Date
}

interface AuthorityInput extends Common {
  /** The common name, of at most 64 characters. */
  name: string
  publicKey: KeyObject
  privateKey: KeyObject
}

interface ServerInput extends Common {
  /** The common name, of at most 64 characters. */
  name: string
  /** The server's key. */
  publicKey: KeyObject
  /** Host names, which may begin with `*.`, and IP addresses. */
  hosts: readonly string[]
  /** Whether the server also uses the certificate as a client of others. */
  isClient?: boolean
  issuer: {
    /** The authority's common name. */
    name: string
    publicKey: KeyObject
    privateKey: KeyObject
  }
}

/** Creates the certificate of an authority that signs itself. @returns PEM */
export function authorityCertificate(input: AuthorityInput): string {
  const extensions = [
    // It is an authority, and none of the certificates that it signs is one.
    extension('basicConstraints', sequence(boolean(true), unsignedInteger(Buffer.of(0))), { isCritical: true }),
    extension('keyUsage', signsCertificatesAndLists, { isCritical: true }),
    extension('subjectKeyIdentifier', octetString(keyIdentifier(input.publicKey))),
  ]
  return certificate(input, { ...input, issuerName: input.name }, extensions)
}

/** Creates the certificate of a server. @returns PEM */
export function serverCertificate(input: ServerInput): string {
  const { name, publicKey, issuer } = input
  const extensions = serverExtensions(input, issuer.publicKey)
  return certificate(input, { name, publicKey, issuerName: issuer.name, privateKey: issuer.privateKey }, extensions)
}

interface OwnInput extends Common, Pick<ServerInput, 'name' | 'publicKey' | 'hosts'> {
  /** The server's private key. */
  privateKey: KeyObject
}

/** Creates the certificate of a server that signs its own. Clients know it, because no authority vouches for it. @returns PEM */
export function ownServerCertificate(input: OwnInput): string {
  return certificate(input, { ...input, issuerName: input.name }, serverExtensions(input, input.publicKey))
}

function serverExtensions(
  { hosts, publicKey, isClient = false }: Pick<ServerInput, 'hosts' | 'publicKey' | 'isClient'>,
  issuerKey: KeyObject,
): Buffer[] {
  const purposes = isClient ? (['serverAuth', 'clientAuth'] as const) : (['serverAuth'] as const)
  return [
    extension('basicConstraints', sequence(), { isCritical: true }),
    extension('keyUsage', signsData, { isCritical: true }),
    extension('extKeyUsage', sequence(...purposes.map((purpose) => objectIdentifier(identifiers[purpose])))),
    extension('subjectAltName', sequence(...hosts.map(generalName))),
    extension('subjectKeyIdentifier', octetString(keyIdentifier(publicKey))),
    extension('authorityKeyIdentifier', sequence(implicit(0, keyIdentifier(issuerKey)))),
  ]
}

interface Signed {
  name: string
  publicKey: KeyObject
  issuerName: string
  /** The issuer's private key. */
  privateKey: KeyObject
}

function certificate(
  { serial, notBefore, notAfter }: Common,
  { name, publicKey, issuerName, privateKey }: Signed,
  extensions: readonly Buffer[],
): string {
  const isEdwards = kindOf(privateKey) === 'ed25519'
  const algorithm = sequence(objectIdentifier(identifiers[isEdwards ? 'ed25519' : 'ecdsaWithSha256']))
  const version3 = unsignedInteger(Buffer.of(2))
  const body = sequence(
    explicit(0, version3),
    unsignedInteger(serial),
    algorithm,
    distinguishedName(issuerName),
    sequence(time(notBefore), time(notAfter)),
    distinguishedName(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    explicit(3, sequence(...extensions)),
  )
  const signature = sign(isEdwards ? null : 'sha256', body, privateKey)
  return new X509Certificate(sequence(body, algorithm, bitString(signature))).toString()
}

function extension(name: keyof typeof identifiers, value: Buffer, { isCritical = false } = {}): Buffer {
  return sequence(
    objectIdentifier(identifiers[name]),
    // DER omits a default value.
    ...(isCritical ? [boolean(true)] : []),
    octetString(value),
  )
}

function distinguishedName(commonName: string): Buffer {
  return sequence(setOfOne(sequence(objectIdentifier(identifiers.commonName), utf8String(commonName))))
}

/** Returns the identifier of a key: the SHA-1 of its bytes (RFC 5280, 4.2.1.2). It protects nothing. */
function keyIdentifier(publicKey: KeyObject): Buffer {
  const bytes = publicKey.export({ type: 'spki', format: 'der' }).subarray(-keyBytes[kindOf(publicKey)])
  return createHash('sha1').update(bytes).digest()
}

function kindOf({ asymmetricKeyType }: KeyObject): keyof typeof keyBytes {
  return asymmetricKeyType === 'ed25519' ? 'ed25519' : 'ec'
}

function generalName(host: string): Buffer {
  if (isIPv4(host)) return implicit(ipAddress, Buffer.from(host.split('.').map(Number)))
  if (isIPv6(host)) return implicit(ipAddress, ipv6Bytes(host))
  return implicit(dnsName, Buffer.from(host, 'ascii'))
}

/** Returns the 16 bytes of an IPv6 address without a zone. */
function ipv6Bytes(address: string): Buffer {
  // The URL parser converts an IPv4 address at the end to hexadecimal.
  const canonical = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [head = '', tail] = canonical.split('::')
  const groups = (text: string) => (text === '' ? [] : text.split(':'))
  const [before, after] = [groups(head), groups(tail ?? '')]
  const zeros = Array.from({ length: 8 - before.length - after.length }, () => '0')
  return Buffer.from([...before, ...zeros, ...after].map((group) => group.padStart(4, '0')).join(''), 'hex')
}
