// Keys and certificates that follow from a secret, checked by OpenSSL and by Node.
import { execFile } from 'node:child_process'
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { derivedCertificate } from '#control-plane/x509/derived-certificate.ts'
import { exists, installPackages } from '#scripts/debian-packages.ts'

if (!(await exists('/usr/bin/openssl'))) await installPackages('openssl')

const input = { seed: 's'.repeat(43), purpose: 'one', name: 'A server', hosts: ['postgres-1', 'postgres-2'] }

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
