// Kills control planes while tenants move into services of their own: each move is completed or reverted, and no write is lost.
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { effort, seed } from '#test/support/effort.ts'
import { checkFiles, checkWrites, startWriters } from './support/busy-scene.ts'
import { createBusyTenant } from './support/busy-tenant.ts'
import { ownServices, sharedRemains, startInstalled } from './support/installed.ts'
import { beginIsolation, homeOf } from './support/isolation.ts'
import { ended } from './support/platform.ts'

const kills = effort({ small: 2, full: 100 })
/** The duration of a small move. Control planes are killed at any time of it. */
const moveMilliseconds = 25_000

t.test(`Control planes are killed ${kills} times`, { timeout: 4 * 3_600_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  const platform = await startInstalled(t)
  const ends = { succeeded: 0, failed: 0 }
  for (let done = 0; done < kills; done++) {
    const tenant = await createBusyTenant(platform, `kill-${done}`)
    const users = await startWriters(t, tenant)
    const operation = await beginIsolation(platform, tenant.id)
    await sleep(((seed + done) * 7_919) % moveMilliseconds)
    process.kill(await platform.installation.pid('control-plane'), 'SIGKILL')
    const { state, error } = await ended(platform, operation)
    t.comment(`${String(state)}: ${String(error)}`)
    const isMoved = state === 'succeeded'
    ends[isMoved ? 'succeeded' : 'failed']++
    await users.untilAllContinue()
    await users.stop()
    await checkWrites(t, homeOf(tenant), users)
    await checkFiles(t, tenant, users)
    const { body } = await platform.call('GET', `/v1/tenants/${tenant.id}`)
    t.equal(body['isolation'], isMoved ? 'database-per-tenant' : 'schema-per-tenant')
    const left = await (isMoved ? sharedRemains(platform, tenant) : ownServices(platform, tenant))
    t.same(left, [], 'nothing is left on the other side')
    await platform.call('DELETE', `/v1/tenants/${tenant.id}?purge=true`, undefined, { prefer: 'wait=60' })
  }
  t.comment(`${ends.succeeded} moves were completed, ${ends.failed} were reverted`)
})
