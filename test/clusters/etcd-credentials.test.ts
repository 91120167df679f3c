// The credentials of a region's etcd: created once, stored sealed, and required while the region has clusters.
import { X509Certificate } from 'node:crypto'
import t from 'tap'
import { newAuthority } from '#control-plane/certificates/authority.ts'
import { keepEtcdCredentials } from '#control-plane/clusters/store-etcd-credentials.ts'
import { isolationsOf } from '#control-plane/engines/engine.ts'
import { startPlane } from '#test/support/control-plane/plane.ts'

const clusters = { member_image: 'tenantry/cluster-member', etcd_image: 'tenantry/etcd' }
const plane = await startPlane(t)
const { database, seal } = plane
const authority = newAuthority('00000000-0000-4000-8000-000000000001', new Date())
const deps = { database, seal, now: () => new Date(), authority: { get: async () => authority } }
const keep = async (settings: Parameters<typeof plane.region>[0]) => {
  const [region] = await keepEtcdCredentials(deps, [plane.region(settings)])
  return region?.etcd
}

t.test('A region without clusters has no credentials, and does not support clusters', async (t) => {
  t.equal(await keep({}), undefined)
  t.same(await plane.sql('select etcd_credentials from regions'), [{ etcd_credentials: null }])
  t.same(isolationsOf(plane.region()), ['schema-per-tenant', 'database-per-tenant'])
  t.same(isolationsOf(plane.region({ clusters })), ['schema-per-tenant', 'database-per-tenant', 'cluster-per-tenant'])
})

t.test(
  'All control planes of an installation have the same credentials, and the database has them sealed',
  async (t) => {
    const [one, two] = await Promise.all([keep({ clusters }), keep({ clusters })])
    t.same(one, two)
    t.same(await keep({ clusters }), one, 'and after a restart')
    t.equal(one?.authority, authority.certificate)
    t.ok(new X509Certificate(one?.certificate ?? '').verify(new X509Certificate(authority.certificate).publicKey))
    const [row] = await plane.sql('select etcd_credentials from regions')
    const stored = Buffer.from(row?.['etcd_credentials'] as Uint8Array)
    t.ok(stored.length > 0)
    for (const secret of [one?.seed, one?.privateKey.split('\n')[1]]) t.notOk(stored.includes(secret ?? ''))
  },
)

t.test('Another range of networks needs another certificate, and no other passwords', async (t) => {
  const before = await keep({ clusters })
  const after = await keep({ clusters, network_range: '10.77.0.0/20' })
  t.equal(after?.seed, before?.seed)
  t.not(after?.certificate, before?.certificate)
  t.equal(new X509Certificate(after?.certificate ?? '').checkIP('10.77.0.12'), '10.77.0.12')
})

t.test('A region with clusters cannot be configured without them', async (t) => {
  await plane.addTenant({ isolation: 'cluster-per-tenant' })
  await t.rejects(keep({}), {
    name: 'ConfigurationError',
    message: /^TENANTRY_REGIONS_FILE: the region ".+" has 1 tenants with clusters, but no "clusters"\.$/,
  })
  t.ok(await keep({ clusters }))
})
