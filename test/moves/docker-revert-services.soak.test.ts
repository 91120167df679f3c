// A tenant of a region on a Docker Engine moves into services of its own and out of them, and the moves are reverted, while it is
// used.
import t from 'tap'
import { startRequests } from './support/busy-scene.ts'
import { createBusyTenant } from './support/busy-tenant.ts'
import { checkReturned, ownObjects, remainsOf, sharedRemains, startContainers } from './support/containers.ts'
import { isolate, revertIsolation } from './support/isolation.ts'

/** The models after each other, with the one to which the tenant returns by a revert. */
const moves = [
  ['cluster-per-tenant', 'schema-per-tenant'],
  ['cluster-per-tenant', undefined],
  ['schema-per-tenant', 'cluster-per-tenant'],
  ['schema-per-tenant', undefined],
  ['database-per-tenant', 'schema-per-tenant'],
] as const

t.test('Moves into own services and out of them are reverted', { timeout: 3_600_000 }, async (t) => {
  const platform = await startContainers(t, { TENANTRY_MOVE_REVERSE_SECONDS: '3600' })
  const tenant = await createBusyTenant(platform, 'ada')
  const users = await startRequests(t, tenant)
  await users.untilAllContinue()
  for (const [isolation, back] of moves) {
    t.match(await isolate(platform, tenant, isolation), {
      state: 'succeeded',
      error: null,
      move: { to_isolation: isolation, revertible_until: /^\d{4}-/ },
    })
    await users.untilAllContinue()
    if (back === undefined) continue
    t.match(await revertIsolation(platform, tenant), {
      state: 'succeeded',
      error: null,
      move: { from_isolation: isolation, to_isolation: back },
    })
    await users.untilAllContinue()
    t.match(await platform.call('GET', `/v1/tenants/${tenant.id}`), { body: { status: 'ready', isolation: back } })
    if (isolation !== 'schema-per-tenant')
      t.same((await ownObjects(platform, tenant.id)).filter(remainsOf(isolation)), [], `${isolation} is removed`)
    if (back !== 'schema-per-tenant')
      t.equal(await sharedRemains(platform, tenant.id), '0', 'nothing is left in the shared Postgres')
  }
  await users.stop()
  await checkReturned(t, platform, tenant, users)
})
