// The routes of the certificate authority, and its creation.
import { generateKeyPairSync, X509Certificate } from 'node:crypto'
import { internalPaths, internalTokenHeader, tenantToken } from '@tenantry/contract'
import t from 'tap'
import { openAuthority } from '#control-plane/certificates/open-authority.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { internalToken, isError, startApi } from '#test/support/control-plane/api.ts'

const api = await startApi(t)
const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const spki = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
const path = '/v1/certificate-authority.pem'
const issue = (body: unknown, token = internalToken) =>
  api.call('POST', internalPaths.sqlCertificate, { key: null, body, headers: { [internalTokenHeader]: token } })
const creations = async () => {
  const { body } = await api.call('GET', '/v1/audit?limit=100')
  return (body as { entries: { action: string; actor: string }[] }).entries.filter(
    ({ action }) => action === 'certificate_authority.create',
  )
}

t.test('Everyone can read the certificate of the authority, which does not change', async (t) => {
  const { status, text, headers } = await api.call('GET', path, { key: null })
  t.equal(status, 200)
  t.equal(headers['content-type'], 'application/x-pem-file')
  t.ok(new X509Certificate(text).ca)
  t.equal((await api.call('GET', path)).text, text)
  isError(t, await api.call('GET', `${path}?x=1`), 400, 'UNKNOWN_PARAMETER', 'x', 'an unknown parameter')
})

t.test('A gateway gets a certificate for its key, and the names of its regions', async (t) => {
  const { status, body } = await issue({ public_key: spki, domain: 'localhost' })
  t.equal(status, 200)
  const { certificate } = body as { certificate: string }
  const authority = new X509Certificate((await api.call('GET', path)).text)
  const leaf = new X509Certificate(certificate)
  t.ok(leaf.checkIssued(authority) && leaf.verify(authority.publicKey) && leaf.publicKey.equals(publicKey))
  t.ok(certificate.endsWith(authority.toString()), 'with the chain')
  t.match(leaf.subjectAltName, /DNS:\*\.localhost, .*IP Address:127\.0\.0\.1/)
})

t.test('Calls without the token, and malformed ones, get nothing', async (t) => {
  const call = { public_key: spki, domain: 'localhost' }
  isError(t, await issue(call, 'x'.repeat(internalToken.length)), 404, 'NOT_FOUND', '', 'a wrong token')
  const ofTenant = tenantToken(internalToken, 't_00000000000000000000')
  isError(t, await issue(call, ofTenant), 404, 'NOT_FOUND', '', 'the token of a dedicated runtime')
  for (const [body, code] of [
    [{ ...call, public_key: 'AAAA' }, 'INVALID_FIELD'],
    [{ ...call, public_key: '%' }, 'INVALID_FIELD'],
    [{ ...call, domain: '' }, 'INVALID_FIELD'],
    [{ domain: 'localhost' }, 'MISSING_FIELD'],
    [{ ...call, hosts: ['example.org'] }, 'UNKNOWN_FIELD'],
  ] as const)
    isError(t, await issue(body), 400, code, '', JSON.stringify(body))
})

t.test('Control planes that start at once create one authority, whose key is sealed', async (t) => {
  const database = openDatabase(api.controlUrl)
  t.teardown(() => database.$disconnect())
  const open = () => openAuthority({ database, seal: api.seal, now: () => new Date() }, api.record, 'one of several')
  const before = (await creations()).length
  t.equal(before, 1)
  await api.sql('delete from certificate_authority')
  isError(t, await api.call('GET', path), 503, 'UNAVAILABLE', 'certificate authority', 'before it exists')
  const [store] = await Promise.all([open(), open(), open(), open()])
  const rows = await api.sql("select certificate, encode(sealed_key, 'escape') as key from certificate_authority")
  t.equal(rows.length, 1)
  t.notMatch(String(rows[0]?.['key']), /PRIVATE KEY/)
  t.match((await store.get()).privateKey, /PRIVATE KEY/)
  t.match(await creations(), [{ actor: 'system' }, { actor: 'system' }])
  await open()
  t.equal((await creations()).length, before + 1)
  await t.rejects(api.sql("insert into certificate_authority (id, certificate, sealed_key) values (2, '', '')"))
})
