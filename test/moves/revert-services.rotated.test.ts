// A tenant of `npm start` gets services of its own, and leaves them, and the moves are reverted.
import t from 'tap'
import { sharedRemains, startInstalled } from './support/installed.ts'
import { isolate, revertIsolation } from './support/isolation.ts'
import { createOwner, request, sql } from './support/platform.ts'

t.test('A change of the isolation is reverted', { timeout: 1_800_000 }, async (t) => {
  const platform = await startInstalled(t, { TENANTRY_MOVE_REVERSE_SECONDS: '3600' })
  const read = async (id: string) => (await platform.call('GET', `/v1/tenants/${id}`)).body
  const isRevertible = { move: { revertible_until: /^\d{4}-/, not_revertible_reason: null } }
  const reverted = { kind: 'move', state: 'succeeded', step: 'done', error: null }

  await t.test('with the passwords and files that the tenant has then', async (t) => {
    const ben = await createOwner(platform, 'ben')
    const file = (name: string) => `/storage/v1/object/files/${name}`
    await request(platform, ben, 'POST', '/storage/v1/bucket', { name: 'files', policy: 'private' })
    for (const name of ['stays', 'goes'])
      t.match(await request(platform, ben, 'POST', file(name), { name }), { status: 200 })
    t.match(await isolate(platform, ben), isRevertible)
    t.match(await request(platform, ben, 'DELETE', file('goes')), { status: 200 })
    t.match(await request(platform, ben, 'POST', file('comes'), { name: 'comes' }), { status: 200 })
    const rotated = await platform.call('POST', `/v1/tenants/${ben.id}/database-password/rotate`, undefined, {
      prefer: 'wait=60',
    })
    const { database_url: url } = rotated.body
    t.match(await revertIsolation(platform, ben), reverted)
    const statuses = await Promise.all(
      ['stays', 'goes', 'comes'].map(async (name) => (await request(platform, ben, 'GET', file(name))).status),
    )
    t.same(statuses, [200, 404, 200])
    const { database_url: last } = await read(ben.id)
    const { password } = new URL(String(url))
    const present = Object.assign(new URL(String(last)), { password }).href
    t.match(await sql(present, 'select session_user as name'), [{ name: `${ben.id}_admin` }])
    await t.rejects(sql(ben.url, 'select'), /password authentication failed/)

    t.match(await isolate(platform, ben), { state: 'succeeded' })
    t.match(await isolate(platform, ben, 'schema-per-tenant'), isRevertible)
    t.match(await request(platform, ben, 'POST', file('returns'), { name: 'returns' }), { status: 200 })
    t.match(await revertIsolation(platform, ben), { ...reverted, move: { to_isolation: 'database-per-tenant' } })
    t.match(await read(ben.id), { status: 'ready', isolation: 'database-per-tenant', database_url: /\/home$/ })
    t.match(await request(platform, ben, 'GET', file('returns')), { status: 200 })
    t.same(await sharedRemains(platform, ben), [], 'nothing is left where tenants share')
  })
})
