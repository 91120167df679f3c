// Kills control planes while moves into services of a tenant's own and out of them are reverted: each revert is completed, or the
// tenant stays where it is, and no write is lost.
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { effort, seed } from '#test/support/effort.ts'
import { checkFiles, checkWrites, startWriters } from './support/busy-scene.ts'
import { createBusyTenant } from './support/busy-tenant.ts'
import { ownServices, sharedRemains, startInstalled } from './support/installed.ts'
import { homeOf, isolate } from './support/isolation.ts'
import { beginRevert, ended } from './support/platform.ts'

const kills = effort({ small: 2, full: 50 })
/** The duration of a small revert. Control planes are killed at any time of it. */
const revertMilliseconds = 12_000
const endMilliseconds = 600_000
const models = ['schema-per-tenant', 'database-per-tenant'] as const

t.test(`Control planes are killed ${kills} times`, { timeout: 4 * 3_600_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  const platform = await startInstalled(t, { TENANTRY_MOVE_REVERSE_SECONDS: '3600' })
  const tenant = await createBusyTenant(platform, 'ada')
  const users = await startWriters(t, tenant)
  /** The position of the tenant's model. */
  let at: 0 | 1 = 0
  for (let done = 0; done < kills; done++) {
    const other: 0 | 1 = at === 0 ? 1 : 0
    t.match(await isolate(platform, tenant, models[other]), { state: 'succeeded', error: null })
    await users.untilAllContinue()
    const operation = await beginRevert(platform, tenant)
    await sleep(((seed + done) * 7_919) % revertMilliseconds)
    process.kill(await platform.installation.pid('control-plane'), 'SIGKILL')
    const { state, error } = await ended(platform, operation, endMilliseconds)
    t.comment(`${models[other]} to ${models[at]}: ${JSON.stringify({ state, error })}`)
    const isReverted = state === 'succeeded'
    if (!isReverted) at = other
    await users.untilAllContinue()
    const { body } = await platform.call('GET', `/v1/tenants/${tenant.id}`)
    t.equal(body['isolation'], models[at])
    if (isReverted)
      t.same(await (at === 0 ? ownServices : sharedRemains)(platform, tenant), [], 'nothing is left on the other side')
  }
  await users.stop()
  await checkWrites(t, homeOf(tenant), users)
  await checkFiles(t, tenant, users)
})
