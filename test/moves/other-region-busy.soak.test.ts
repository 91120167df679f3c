// A tenant of `npm start` moves to another region while all of its users are active, is reverted, moves there again, and back, also
// into services of its own and out of them.
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { everyObjectSql } from '#test/backups/support/every-object.ts'
import { until } from '#test/support/until.ts'
import { checkFiles, checkWrites, runsOf, startRequests } from './support/busy-scene.ts'
import { createBusyTenant } from './support/busy-tenant.ts'
import { isSharedLoginOpen, ownServices, sharedRemains, startInstalled } from './support/installed.ts'
import { homeOf, relocate, revertIsolation } from './support/isolation.ts'
import { otherRegion as region, remainsIn, startOtherRegion } from '#test/support/other-region.ts'
import { sql } from './support/platform.ts'

t.test('A tenant moves to another region, and back', { timeout: 1_800_000 }, async (t) => {
  const platform = await startInstalled(t, { TENANTRY_MOVE_REVERSE_SECONDS: '3600' })
  const other = await startOtherRegion(t, platform)
  const tenant = await createBusyTenant(platform, 'ada')
  await sql(tenant.url, everyObjectSql)
  const bodyOf = async () => (await platform.call('GET', `/v1/tenants/${tenant.id}`)).body
  const filesThere = () => readdir(join(other.files, tenant.id)).catch(() => [])
  const { url } = await bodyOf()
  const users = await startRequests(t, tenant)
  await users.untilAllContinue()

  await t.test('while everything of it is used', async (t) => {
    t.match(await relocate(platform, tenant, { region }), {
      kind: 'move',
      state: 'succeeded',
      error: null,
      move: { from_region: 'local', to_region: region, from_isolation: null, revertible_until: String },
    })
    await users.untilAllContinue()
    t.match(await bodyOf(), { region, status: 'ready', isolation: 'schema-per-tenant', url })
    t.not((await filesThere()).length, 0, 'its files are there')
    t.equal(await isSharedLoginOpen(platform, tenant), false, 'the former home is closed')
  })

  await t.test('returns by a revert', async (t) => {
    await users.untilAllContinue()
    t.match(await revertIsolation(platform, tenant), { state: 'succeeded', error: null, move: { to_region: 'local' } })
    await users.untilAllContinue()
    t.match(await bodyOf(), { region: 'local', status: 'ready', url })
    t.same(await remainsIn(other, tenant), [], 'nothing of it is left there')
    t.same(await filesThere(), [])
  })

  await t.test('and moves there again, and back into services of its own', async (t) => {
    t.match(await relocate(platform, tenant, { region }), { state: 'succeeded', error: null })
    await users.untilAllContinue()
    t.match(await relocate(platform, tenant, { region: 'local', isolation: 'database-per-tenant' }), {
      state: 'succeeded',
      error: null,
      move: { from_region: region, to_region: 'local', to_isolation: 'database-per-tenant' },
    })
    t.same(await sharedRemains(platform, tenant), [], 'another move has removed the first home')
    await users.untilAllContinue()
    t.match(await bodyOf(), { region: 'local', isolation: 'database-per-tenant', url })
    t.match(await relocate(platform, tenant, { region, isolation: 'schema-per-tenant' }), {
      state: 'succeeded',
      error: null,
    })
    await users.untilAllContinue()
    t.not((await ownServices(platform, tenant)).length, 0, 'its services run on for a revert')
  })

  await users.stop()
  const home = homeOf(tenant)
  const ids = await checkWrites(t, home, users)
  await checkFiles(t, tenant, users)
  t.same(users.reader.wrong, [], 'a URL from before the moves is valid')
  const runs = await runsOf(t, home)
  t.same(runs.notes.sort(), ids.sort(), `each of ${ids.length} notes has run its function once`)
  t.match(await sql(tenant.url, 'select count(*)::int as n from facts'), [{ n: 500 }], 'every kind of object is there')
  await platform.call('DELETE', `/v1/tenants/${tenant.id}?purge=true`, undefined, { prefer: 'wait=60' })
  await until(async () => (await remainsIn(other, tenant)).length === 0, 'the end of its home and of the stream')
  t.same(await filesThere(), [], 'its files end with it')
})
