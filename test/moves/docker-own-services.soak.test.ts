// A tenant of a region on a Docker Engine moves between all isolation models, while it is used.
import t from 'tap'
import { everyObjectSql } from '#test/backups/support/every-object.ts'
import { startRequests } from './support/busy-scene.ts'
import { createBusyTenant } from './support/busy-tenant.ts'
import { checkReturned, ownObjects, remainsOf, sharedRemains, startContainers } from './support/containers.ts'
import { isolate } from './support/isolation.ts'
import { sql } from './support/platform.ts'

const shared = { isolation: 'schema-per-tenant', database: 'tenantry_homes_1' } as const
const own = { isolation: 'database-per-tenant', database: 'home' } as const
const cluster = { isolation: 'cluster-per-tenant', database: 'home' } as const
/** Each model after each other one. */
const models = [shared, own, cluster, shared, cluster, own, shared]

t.test('A tenant moves between all isolation models', { timeout: 3_600_000 }, async (t) => {
  const platform = await startContainers(t)
  const tenant = await createBusyTenant(platform, 'ada')
  await sql(tenant.url, everyObjectSql)
  const users = await startRequests(t, tenant)
  await users.untilAllContinue()
  for (const [at, { isolation, database }] of models.slice(1).entries()) {
    t.match(await isolate(platform, tenant, isolation), {
      state: 'succeeded',
      error: null,
      move: { from: models[at]?.database, to: database, to_isolation: isolation },
    })
    await users.untilAllContinue()
    t.match(await platform.call('GET', `/v1/tenants/${tenant.id}`), { body: { status: 'ready', isolation } }, isolation)
    if (isolation !== 'schema-per-tenant')
      t.equal(await sharedRemains(platform, tenant.id), '0', 'nothing is left in the shared Postgres')
    const former = remainsOf(models[at]?.isolation ?? isolation)
    t.same((await ownObjects(platform, tenant.id)).filter(former), [], 'the former services and volumes are removed')
  }
  await users.stop()
  await checkReturned(t, platform, tenant, users)
  t.match(await sql(tenant.url, 'select count(*)::int as n from facts'), [{ n: 500 }], 'every kind of object is there')
})
