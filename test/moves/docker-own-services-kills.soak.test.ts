// Kills control planes, runtimes and Postgres servers on a Docker Engine while a tenant moves between all isolation models: each move
// is completed or reverted, and no write is lost.
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { etcdList } from '#test/clusters/platform-parts.ts'
import type { DockerPlatform } from '#test/support/docker-platform.ts'
import { effort, seed } from '#test/support/effort.ts'
import { checkFiles, checkWrites, startWriters } from './support/busy-scene.ts'
import { createBusyTenant } from './support/busy-tenant.ts'
import { ownObjects, remainsOf, sharedRemains, startContainers } from './support/containers.ts'
import { beginIsolation, homeOf } from './support/isolation.ts'
import { ended } from './support/platform.ts'

const kills = effort({ small: 4, full: 100 })
/** The duration of a move. Services are killed at any time of it. */
const moveMilliseconds = 60_000
const endMilliseconds = 900_000

/** Each model after each other one. */
const models = [
  'schema-per-tenant',
  'database-per-tenant',
  'cluster-per-tenant',
  'schema-per-tenant',
  'cluster-per-tenant',
  'database-per-tenant',
] as const

t.test(`Services are killed ${kills} times`, { timeout: 8 * 3_600_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  const platform = await startContainers(t)
  const tenant = await createBusyTenant(platform, 'ada')
  const users = await startWriters(t, tenant)
  await users.untilAllContinue()

  let control = platform.controlPlane
  const killControl = async () => {
    await control.kill()
    control = await platform.startControlPlane()
    return 'the control plane'
  }
  const victims = [
    killControl,
    (random: number) => killOne(platform, 'runtime', random),
    (random: number) => killOne(platform, 'postgres', random),
  ]

  let at = 0
  for (let done = 0; done < kills; done++) {
    const [from, to] = [modelAt(at), modelAt(at + 1)]
    const operation = await beginIsolation(platform, tenant.id, to)
    const random = (seed + done) * 7_919
    await sleep(random % moveMilliseconds)
    const victim = await victims[done % victims.length]?.(random)
    const { state, error } = await ended(platform, operation, endMilliseconds)
    t.comment(`${String(victim)}, ${from} to ${to}: ${JSON.stringify({ state, error })}`)
    const isMoved = state === 'succeeded'
    if (isMoved) at++
    await platform.until(
      tenant.id,
      ({ status, isolation }) => status === 'ready' && isolation === (isMoved ? to : from),
    )
    await users.untilAllContinue()
    const now = modelAt(at)
    const isRemains = now === 'schema-per-tenant' ? () => true : remainsOf(isMoved ? from : to)
    t.same((await ownObjects(platform, tenant.id)).filter(isRemains), [], 'no services are left on the other side')
    if (now !== 'schema-per-tenant')
      t.equal(await sharedRemains(platform, tenant.id), '0', 'nothing is left in the shared Postgres')
    if (now !== 'cluster-per-tenant')
      t.notMatch(await etcdList(platform, AbortSignal.timeout(30_000)), tenant.id, 'nothing is left in etcd')
  }
  await users.stop()
  await checkWrites(t, homeOf(tenant), users)
  await checkFiles(t, tenant, users)
})

function modelAt(at: number): (typeof models)[number] {
  return models[at % models.length] ?? models[0]
}

/** Kills one of the containers of a kind: of the tenant, or of the region. @returns its name */
async function killOne(
  { host, installation, kill }: DockerPlatform,
  kind: 'runtime' | 'postgres',
  random: number,
): Promise<string> {
  const { containers } = await host.observe({ installation }, AbortSignal.timeout(30_000))
  const running = containers.filter(
    ({ state, labels }) => state === 'running' && labels.service?.split('-')[0] === kind,
  )
  const chosen = running[random % running.length]?.name ?? ''
  await kill(chosen)
  return chosen
}
