// Tenants of `npm start` move to another region, and return by a revert. Moves that are not possible are rejected.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { isSharedLoginOpen, startInstalled } from './support/installed.ts'
import { relocate, revertIsolation } from './support/isolation.ts'
import { otherRegion as region, remainsIn, startOtherRegion } from '#test/support/other-region.ts'
import { createOwner, fill, request, sql } from './support/platform.ts'

t.test('A tenant moves to another region, and returns', { timeout: 900_000 }, async (t) => {
  const platform = await startInstalled(t, { TENANTRY_MOVE_REVERSE_SECONDS: '3600' })
  const other = await startOtherRegion(t, platform)
  const tenant = await createOwner(platform, 'ada')
  await fill(platform, tenant)
  const send = (path: string, body: string, type: string) =>
    platform.tenantCall(tenant.name, 'POST', path, { key: tenant.key, body, type })
  t.equal((await send('/storage/v1/bucket', '{"name":"files"}', 'application/json')).status, 201)
  const upload = async (name: string) =>
    t.equal((await send(`/storage/v1/object/files/${name}`, name, 'text/plain')).status, 200, name)
  const fileOf = async (name: string) =>
    (await request(platform, tenant, 'GET', `/storage/v1/object/files/${name}`)).text
  const bodyOf = async () => (await platform.call('GET', `/v1/tenants/${tenant.id}`)).body
  const filesThere = () => readdir(join(other.files, tenant.id)).catch(() => [])
  const { url } = await bodyOf()
  await upload('first')

  const change = (changes: object) => platform.call('PATCH', `/v1/tenants/${tenant.id}`, changes)
  for (const [changes, expected] of [
    [
      { region: 'nowhere' },
      { status: 400, body: { code: 'UNKNOWN_REGION', message: 'Unknown region "nowhere". Allowed: local, other.' } },
    ],
    [{ region: 'local' }, { status: 409, body: { code: 'SAME_REGION' } }],
    [
      { region, plan: 'Pro' },
      { status: 400, body: { code: 'INVALID_FIELD', message: /^Field "region" must be the only one/ } },
    ],
    [
      { region, isolation: 'database-per-tenant' },
      { status: 422, body: { code: 'UNSUPPORTED_ISOLATION' } },
    ],
  ] as const)
    t.match(await change(changes), expected, JSON.stringify(changes))

  t.match(await relocate(platform, tenant, { region }), {
    kind: 'move',
    state: 'succeeded',
    error: null,
    move: { from_region: 'local', to_region: region, from_isolation: null, revertible_until: String },
  })
  t.match(await bodyOf(), { region, status: 'ready', isolation: 'schema-per-tenant', url })
  t.equal(await fileOf('first'), 'first', 'its file is served from there')
  t.not((await filesThere()).length, 0)
  t.equal(await isSharedLoginOpen(platform, tenant), false, 'the former home is closed')
  await upload('second')
  await sql(tenant.url, 'insert into keyless (n) values (41)')

  t.match(await revertIsolation(platform, tenant), { state: 'succeeded', error: null, move: { to_region: 'local' } })
  t.match(await bodyOf(), { region: 'local', status: 'ready', url })
  for (const name of ['first', 'second']) t.equal(await fileOf(name), name, 'no file is lost')
  t.match(await sql(tenant.url, 'select count(*)::int as n from keyless'), [{ n: 41 }], 'and no row')
  t.same(await remainsIn(other, tenant), [], 'nothing of it is left there')
  t.same(await filesThere(), [])
  await upload('third')
})

t.test('A region whose runtimes serve all regions receives no tenant', { timeout: 600_000 }, async (t) => {
  const platform = await startInstalled(t)
  const other = await startOtherRegion(t, platform, { environment: {} })
  const tenant = await createOwner(platform, 'ben')
  t.match(await relocate(platform, tenant, { region }), {
    state: 'failed',
    error: 'The runtimes of the region "other" need the setting TENANTRY_REGION=other.',
  })
  t.same(await remainsIn(other, tenant), [])
  t.equal((await request(platform, tenant, 'GET', '/storage/v1/bucket')).status, 200, 'the tenant is served as before')
})
