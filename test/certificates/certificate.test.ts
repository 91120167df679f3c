// The certificates of the installation's own authority, checked by OpenSSL and by Node.
import { execFile } from 'node:child_process'
import { createPublicKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { issueCertificate, newAuthority, readPublicKey } from '#control-plane/certificates/authority.ts'
import { certificateHosts } from '#control-plane/certificates/hosts.ts'
import {
  bitString,
  boolean,
  explicit,
  implicit,
  objectIdentifier,
  octetString,
  sequence,
  time,
  unsignedInteger,
  utf8String,
} from '#control-plane/x509/der.ts'
import { exists, installPackages } from '#scripts/debian-packages.ts'

if (!(await exists('/usr/bin/openssl'))) await installPackages('openssl')

const installation = '00000000-0000-4000-8000-000000000001'
const directory = await mkdtemp(join(tmpdir(), 'tenantry-certificates-'))
t.teardown(() => rm(directory, { recursive: true, force: true }))
const at = (file: string) => join(directory, file)
const p256 = () => generateKeyPairSync('ec', { namedCurve: 'P-256' })

/** Runs openssl. @returns its output, also after an error */
const openssl = (...args: string[]): Promise<string> =>
  promisify(execFile)('openssl', args).then(
    ({ stdout, stderr }) => stdout + stderr,
    (error: unknown) => `${(error as { stdout: string }).stdout}${(error as { stderr: string }).stderr}`,
  )

t.test('OpenSSL and Node accept the certificates for their names only', async (t) => {
  const now = new Date()
  const authority = newAuthority(installation, now)
  const hosts = ['db.example.org', '*.tenants.example.org', '192.0.2.7', '2001:db8::1:0:7', '::1', '::ffff:192.0.2.8']
  const { publicKey } = p256()
  const chain = issueCertificate(authority, publicKey, hosts, now)
  await writeFile(at('ca.pem'), authority.certificate)
  await writeFile(at('chain.pem'), chain)
  const verify = (...args: string[]) =>
    openssl('verify', '-x509_strict', '-purpose', 'sslserver', '-CAfile', at('ca.pem'), ...args, at('chain.pem'))
  for (const check of [
    [],
    ['-verify_hostname', 'db.example.org'],
    ['-verify_hostname', 'acme.tenants.example.org'],
    ['-verify_ip', '192.0.2.7'],
    ['-verify_ip', '2001:db8::1:0:7'],
    ['-verify_ip', '::1'],
    ['-verify_ip', '::ffff:192.0.2.8'],
  ])
    t.equal(await verify(...check), `${at('chain.pem')}: OK\n`, check.join(' '))
  for (const check of [
    ['-verify_hostname', 'example.org'],
    ['-verify_hostname', 'a.b.tenants.example.org'],
    ['-verify_ip', '192.0.2.9'],
  ])
    t.match(await verify(...check), /mismatch/i, check.join(' '))
  t.match(await verify('-purpose', 'sslclient'), /unsuitable|unsupported|purpose/i, 'not for clients')
  const days = 24 * 3_600
  const epoch = (seconds: number) => String(Math.floor(now.getTime() / 1_000) + seconds)
  t.match(await verify('-attime', epoch(89 * days)), /OK/)
  t.match(await verify('-attime', epoch(91 * days)), /expired/)
  t.match(await verify('-attime', epoch(-2 * 3_600)), /not yet valid/)

  const [own, leaf] = [new X509Certificate(authority.certificate), new X509Certificate(chain)]
  t.ok(leaf.verify(own.publicKey) && leaf.checkIssued(own) && own.verify(own.publicKey))
  t.same([own.ca, leaf.ca], [true, false])
  t.equal(own.subject, `CN=Tenantry ${installation}`)
  t.equal(leaf.checkIP('2001:db8::1:0:7'), '2001:db8::1:0:7')
  t.equal(leaf.publicKey.equals(publicKey), true)
  t.same(leaf.keyUsage, ['1.3.6.1.5.5.7.3.1'])
  t.equal(new Date(own.validTo).getUTCFullYear(), now.getUTCFullYear() + 20)
  const texts = await Promise.all(
    ['ca.pem', 'chain.pem'].map((file) => openssl('x509', '-noout', '-text', '-in', at(file))),
  )
  t.match(texts[0], /Basic Constraints: critical\s+CA:TRUE, pathlen:0\s/)
  t.match(texts[0], /Key Usage: critical\s+Certificate Sign, CRL Sign\s/)
  t.match(texts[1], /Basic Constraints: critical\s+CA:FALSE\s/)
  t.match(texts[1], /Key Usage: critical\s+Digital Signature\s/)
  t.match(texts[1], /Extended Key Usage:\s+TLS Web Server Authentication\s/)
  const identifier = (name: string, text = '') =>
    new RegExp(`${name} Key Identifier:\\s+(?:keyid:)?(\\S+)`).exec(text)?.[1]
  t.ok(identifier('Subject', texts[0]))
  t.equal(identifier('Authority', texts[1]), identifier('Subject', texts[0]))
  t.not(identifier('Subject', texts[1]), identifier('Subject', texts[0]))
})

t.test('A changed certificate, and one of another authority, are rejected', async (t) => {
  const now = new Date()
  const authority = newAuthority(installation, now)
  const other = newAuthority(installation, now)
  const chain = issueCertificate(authority, p256().publicKey, ['localhost'], now)
  const bytes = new X509Certificate(chain).raw
  const name = bytes.indexOf('localhost')
  bytes.write('remotehst', name)
  t.notOk(new X509Certificate(bytes).verify(createPublicKey(authority.certificate)))
  t.ok(new X509Certificate(chain).verify(createPublicKey(authority.certificate)))
  t.notOk(new X509Certificate(chain).verify(createPublicKey(other.certificate)), 'the same name, but another key')
})

t.test('Serial numbers differ, and certificates do not outlive the authority', async (t) => {
  const authority = newAuthority(installation, new Date('2035-06-01'))
  const issue = (now: string) =>
    new X509Certificate(issueCertificate(authority, p256().publicKey, ['a'], new Date(now)))
  const all = Array.from({ length: 50 }, () => issue('2040-01-01'))
  t.equal(new Set(all.map(({ serialNumber }) => serialNumber)).size, 50)
  t.same(
    all.filter(({ serialNumber }) => !/^[4-7][0-9A-F]{31}$/.test(serialNumber)),
    [],
    'positive, of 16 bytes',
  )
  t.equal(Date.parse(issue('2049-12-31').validTo), Date.parse('2050-03-31T00:00:00Z'), 'after 2049')
  t.equal(Date.parse(issue('2055-05-20').validTo), Date.parse('2055-06-01T00:00:00Z'))
  t.end()
})

t.test('Only public keys on the curve P-256 are accepted', (t) => {
  const spki = (key: ReturnType<typeof p256>['publicKey']) =>
    key.export({ type: 'spki', format: 'der' }).toString('base64')
  const { publicKey, privateKey } = p256()
  t.ok(readPublicKey(spki(publicKey)).equals(publicKey))
  for (const [name, text] of [
    ['another curve', spki(generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey)],
    ['another kind', spki(generateKeyPairSync('ed25519').publicKey)],
    ['a private key', privateKey.export({ type: 'pkcs8', format: 'der' }).toString('base64')],
    ['nothing', 'AAAA'],
    ['a part', spki(publicKey).slice(0, 60)],
  ] as const)
    t.throws(() => readPublicKey(text), { code: 'INVALID_FIELD' }, name)
  t.end()
})

t.test('The names are those of the regions with the domain, and of the own machine', (t) => {
  const own = ['localhost', '127.0.0.1', '::1']
  const region = (domain: string, gateway: string, database: string) => ({
    domain,
    gateway_url: gateway,
    database_host: database,
  })
  const regions = [
    region('north.example.org', 'https://NORTH.example.org:8443', '10.99.0.2:5432'),
    region('north.example.org', 'http://[2001:db8::7]:80', '[2001:db8::8]:5432'),
    region('south.example.org', 'https://south.example.org', 'sql.south.example.org:5432'),
    region('odd.example.org', 'https://odd.example.org', "bad name'; drop:5432"),
  ]
  t.same(certificateHosts('North.example.org', regions), [
    'north.example.org',
    '*.north.example.org',
    '10.99.0.2',
    '2001:db8::7',
    '2001:db8::8',
    ...own,
  ])
  t.same(certificateHosts('odd.example.org', regions), ['odd.example.org', '*.odd.example.org', ...own])
  t.same(certificateHosts('unknown', regions), own)
  t.end()
})

t.test('Values have the encoding of DER', (t) => {
  const hex = (bytes: Buffer) => bytes.toString('hex')
  t.equal(hex(boolean(true)), '0101ff')
  for (const [bytes, wanted] of [
    [[], '020100'],
    [[0, 0], '020100'],
    [[0, 1], '020101'],
    [[0x7f], '02017f'],
    [[0x80], '02020080'],
    [[0, 0, 0xff, 0], '020300ff00'],
  ] as const)
    t.equal(hex(unsignedInteger(Buffer.from(bytes))), wanted)
  t.equal(hex(objectIdentifier('1.2.840.113549')), '06062a864886f70d')
  t.equal(hex(objectIdentifier('2.5.29.17')), '0603551d11')
  t.equal(hex(bitString(Buffer.of(0x80), 7)), '03020780')
  t.equal(hex(utf8String('é')), '0c02c3a9')
  t.equal(hex(explicit(3, boolean(false))), 'a303010100')
  t.equal(hex(implicit(2, Buffer.from('a'))), '820161')
  t.equal(time(new Date('2049-12-31T23:59:59.999Z')).toString('latin1'), '\x17\x0d491231235959Z')
  t.equal(time(new Date('2050-01-01T00:00:00Z')).toString('latin1'), '\x18\x0f20500101000000Z')
  for (const [length, wanted] of [
    [0x7f, '047f'],
    [0x80, '048180'],
    [0xff, '0481ff'],
    [0x100, '04820100'],
    [0xffff, '0482ffff'],
    [0x10000, '0483010000'],
  ] as const)
    t.equal(hex(octetString(Buffer.alloc(length)).subarray(0, wanted.length / 2)), wanted)
  t.equal(hex(sequence()), '3000')
  t.end()
})
