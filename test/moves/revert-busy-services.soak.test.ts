// A tenant of `npm start` gets services of its own, and leaves them. Both moves are reverted while all of its users are active.
import t from 'tap'
import { checkFiles, checkWrites, runsOf, startRequests } from './support/busy-scene.ts'
import { createBusyTenant } from './support/busy-tenant.ts'
import { isSharedLoginOpen, ownServices, sharedRemains, startInstalled } from './support/installed.ts'
import { homeOf, isolate, revertIsolation } from './support/isolation.ts'

t.test('A change of the isolation is reverted while the tenant is used', { timeout: 1_800_000 }, async (t) => {
  const platform = await startInstalled(t, { TENANTRY_MOVE_REVERSE_SECONDS: '3600' })
  const isRevertible = { move: { revertible_until: /^\d{4}-/, not_revertible_reason: null } }
  const reverted = { kind: 'move', state: 'succeeded', step: 'done', error: null }
  const tenant = await createBusyTenant(platform, 'ada')
  const users = await startRequests(t, tenant)
  await users.untilAllContinue()
  const grown = await isolate(platform, tenant)
  t.match(grown, { state: 'succeeded', ...isRevertible })
  t.equal(await isSharedLoginOpen(platform, tenant), false, 'the old home is closed')
  await users.untilAllContinue()
  t.match(await revertIsolation(platform, tenant), {
    ...reverted,
    move: { reverts: grown['id'], revertible_until: null },
  })
  t.same(await ownServices(platform, tenant), [], 'the services of its own are removed')
  await users.untilAllContinue()

  t.match(await isolate(platform, tenant), isRevertible)
  await users.untilAllContinue()
  t.match(await isolate(platform, tenant, 'schema-per-tenant'), { state: 'succeeded', ...isRevertible })
  t.not((await ownServices(platform, tenant)).length, 0, 'its own services stay')
  await users.untilAllContinue()
  t.match(await revertIsolation(platform, tenant), reverted)
  t.match((await platform.call('GET', `/v1/tenants/${tenant.id}`)).body, {
    status: 'ready',
    isolation: 'database-per-tenant',
    database_url: /\/home$/,
  })
  t.same(await sharedRemains(platform, tenant), [], 'nothing is left where tenants share')
  await users.untilAllContinue()
  await users.stop()

  const home = homeOf(tenant)
  const ids = await checkWrites(t, home, users)
  await checkFiles(t, tenant, users)
  t.same(users.reader.wrong, [], 'a URL from before the moves is valid')
  t.same((await runsOf(t, home)).notes.sort(), ids.sort(), 'each note has run its function once')
  await platform.call('DELETE', `/v1/tenants/${tenant.id}?purge=true`, undefined, { prefer: 'wait=60' })
})
