// Keys and certificates that follow from a secret, checked by OpenSSL and by Node, and the examples of RFC 6979.
import { execFile } from 'node:child_process'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { derivedCertificate } from '#control-plane/x509/derived-certificate.ts'
import { sequence, unsignedInteger } from '#control-plane/x509/der.ts'
import { signDeterministically } from '#control-plane/x509/deterministic-signature.ts'
import { exists, installPackages } from '#scripts/debian-packages.ts'

if (!(await exists('/usr/bin/openssl'))) await installPackages('openssl')

const input = { seed: 's'.repeat(43), purpose: 'one', name: 'A server', hosts: ['postgres-1', 'postgres-2'] }

t.test('Signatures are those of the examples in RFC 6979, A.2.5', (t) => {
  const key = Buffer.from('c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721', 'hex')
  const examples = [
    [
      'sample',
      'efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716',
      'f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8',
    ],
    [
      'test',
      'f1abb023518351cd71d881567b1ea663ed3efcf6c5132b354f28d3b0b7d38367',
      '019f4113742a2b14bd25926b49c649155f267e60d3814b4c0cc84250e46f0083',
    ],
  ] as const
  for (const [text, r, s] of examples)
    t.same(
      signDeterministically(key, Buffer.from(text)),
      sequence(unsignedInteger(Buffer.from(r, 'hex')), unsignedInteger(Buffer.from(s, 'hex'))),
    )
  t.end()
})

t.test('The same secret and purpose have the same certificate, and others have another key', (t) => {
  const one = derivedCertificate(input)
  t.same(derivedCertificate({ ...input }), one)
  const others = [derivedCertificate({ ...input, purpose: 'two' }), derivedCertificate({ ...input, seed: 'another' })]
  t.equal(new Set([one, ...others].map(({ privateKey }) => privateKey)).size, 3)
  t.equal(new Set([one, ...others].map(({ certificate }) => certificate)).size, 3)
  t.end()
})

t.test('Each of many certificates is signed with its own key, and has no end', (t) => {
  for (let number = 0; number < 50; number++) {
    const { certificate, privateKey } = derivedCertificate({ ...input, purpose: `purpose ${number}` })
    const read = new X509Certificate(certificate)
    t.ok(read.verify(read.publicKey), `signature ${number}`)
    t.ok(read.checkPrivateKey(createPrivateKey(privateKey)))
    t.equal(read.validTo, 'Dec 31 23:59:59 9999 GMT')
    t.equal(read.ca, false)
    t.equal(read.checkHost('postgres-2'), 'postgres-2')
    t.equal(read.checkHost('postgres-4'), undefined)
  }
  t.end()
})

t.test('A client that trusts one certificate accepts it, and no other', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-derived-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  const [one, two] = [join(directory, 'one.pem'), join(directory, 'two.pem')]
  await writeFile(one, derivedCertificate(input).certificate)
  await writeFile(two, derivedCertificate({ ...input, purpose: 'two' }).certificate)
  const verify = (trusted: string, presented: string) =>
    promisify(execFile)('openssl', ['verify', '-x509_strict', '-purpose', 'sslserver', '-CAfile', trusted, presented])
  t.match(await verify(one, one), { stdout: /one\.pem: OK/ })
  await t.rejects(verify(two, one), /self-signed certificate/)
})
