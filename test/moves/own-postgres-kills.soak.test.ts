// Kills a tenant's own Postgres while the tenant moves into services of its own, and out of them: each move is completed or reverted,
// and no write is lost.
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { effort, seed } from '#test/support/effort.ts'
import { ownPid } from '#test/support/installation.ts'
import { checkFiles, checkWrites, startWriters } from './support/busy-scene.ts'
import { createBusyTenant } from './support/busy-tenant.ts'
import { ownServices, sharedRemains, startInstalled } from './support/installed.ts'
import { beginIsolation, homeOf } from './support/isolation.ts'
import { ended } from './support/platform.ts'

const kills = effort({ small: 2, full: 40 })
/** The duration of a small move. The Postgres is killed at any time of it. */
const moveMilliseconds = 25_000
const endMilliseconds = 600_000

t.test(`The tenant's own Postgres is killed ${kills} times`, { timeout: 4 * 3_600_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  const platform = await startInstalled(t)
  const tenant = await createBusyTenant(platform, 'ada')
  const users = await startWriters(t, tenant)
  const ends = { succeeded: 0, failed: 0, unharmed: 0 }
  let isolation = 'schema-per-tenant'
  for (let done = 0; done < kills; done++) {
    const to = isolation === 'schema-per-tenant' ? 'database-per-tenant' : 'schema-per-tenant'
    const operation = await beginIsolation(platform, tenant.id, to)
    await sleep(((seed + done) * 7_919) % moveMilliseconds)
    const pid = await ownPid(platform.installation, tenant.id, 'postgres').catch(() => undefined)
    if (pid === undefined) ends.unharmed++
    else process.kill(pid, 'SIGKILL')
    const { state, error } = await ended(platform, operation, endMilliseconds)
    t.comment(`${to}: ${String(state)}: ${String(error)}`)
    const isMoved = state === 'succeeded'
    ends[isMoved ? 'succeeded' : 'failed']++
    if (isMoved) isolation = to
    await users.untilAllContinue()
    const { body } = await platform.call('GET', `/v1/tenants/${tenant.id}`)
    t.equal(body['isolation'], isolation)
    const left = await (isolation === 'schema-per-tenant' ? ownServices : sharedRemains)(platform, tenant)
    t.same(left, [], 'nothing is left on the other side')
  }
  await users.stop()
  await checkWrites(t, homeOf(tenant), users)
  await checkFiles(t, tenant, users)
  t.comment(
    `${ends.succeeded} moves were completed, ${ends.failed} were reverted; ${ends.unharmed} had no Postgres to kill`,
  )
})
