// Backups of a tenant with a cluster: taken at whichever member is the primary, verified, and restored into the same cluster, also
// when its primary is lost meanwhile, into a new cluster, and into a tenant with a database of its own.
import t, { type Test } from 'tap'
import {
  createOwner,
  ended,
  furnish,
  json,
  put,
  scratchObjects,
  seen,
  startBackupPlatform,
  toOwner,
  type Owner,
} from '#test/backups/support/tenants.ts'
import { clusterImages } from '#test/support/docker-platform.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import { containerOf, primaryOf } from './platform-parts.ts'

/** Returns the databases that restores have left on the cluster. */
function remainingDatabases({ url }: Owner) {
  return query(url, `select datname from pg_database where datname ~ '^(?:restore|replaced)_'`)
}

t.test('backups of a cluster', { timeout: 1_800_000 }, async (t) => {
  const platform = await startBackupPlatform(t, { docker: { clusters: clusterImages } })
  const ada = await createOwner(platform, 'ada', 'cluster-per-tenant')
  await furnish(platform, ada, 2 ** 20)
  let before: Record<string, unknown> = {}
  const spoil = async () => {
    await json(platform, 'ada', ada.key, 'DELETE', '/rest/v1/notes?title=eq.second', undefined)
    await put(platform, 'ada', ada.key, 'papers/later.txt', 'later')
    await query(ada.url, 'create table if not exists later (number int)')
    t.not(JSON.stringify(await seen(platform, ada)), JSON.stringify(before))
  }
  /** Compares what a tenant's users see with what they saw before. Each runtime of a cluster learns of a restore by itself. */
  const isAsBefore = async (t: Test, owner: Owner) => {
    let now = await seen(platform, owner)
    const deadline = performance.now() + 20_000
    while (JSON.stringify(now) !== JSON.stringify(before) && performance.now() < deadline) {
      await new Promise((resolve) => setTimeout(resolve, 250))
      now = await seen(platform, owner)
    }
    t.same(now, before)
  }
  let backupId = ''

  await t.test('a backup is taken after a switchover, and verified', async (t) => {
    const first = await primaryOf(platform, ada)
    const switched = await platform.call('POST', `/v1/tenants/${ada.id}/switchover`, undefined, { prefer: 'wait=60' })
    t.match(switched.body, { operation: { state: 'succeeded' } })
    t.not(await primaryOf(platform, ada), first)
    // A promoted replica continues a sequence after the values that the former primary had reserved.
    before = await seen(platform, ada)
    const taken = await platform.call('POST', `/v1/tenants/${ada.id}/backups`)
    t.match(await ended(platform, taken), { state: 'succeeded', error: null })
    backupId = String(taken.body['id'])
    const verified = await platform.call('POST', `/v1/backups/${backupId}/verify`)
    t.match(await ended(platform, verified), { state: 'succeeded', error: null })
    t.same(await scratchObjects(platform), [])
    const schedule = { backup_schedule: '5 3 * * *' }
    const changed = await platform.call('PATCH', `/v1/tenants/${ada.id}`, schedule, { prefer: 'wait=60' })
    t.match(changed, { status: 200, body: { ...schedule, operation: { state: 'succeeded' } } })
  })

  await t.test('a restore into the same cluster gives all of it back', async (t) => {
    await spoil()
    const restored = await platform.call('POST', `/v1/backups/${backupId}/restore`, { into: 'same' })
    t.match(await ended(platform, restored), { state: 'succeeded', error: null })
    await isAsBefore(t, ada)
    t.same(await remainingDatabases(ada), [])
  })

  await t.test('a restore during which the primary is lost leaves one whole home', async (t) => {
    await spoil()
    const primary = await primaryOf(platform, ada)
    const container = await containerOf(platform, ada, primary, AbortSignal.timeout(10_000))
    const restoring = await platform.call('POST', `/v1/backups/${backupId}/restore`, { into: 'same' })
    const { id } = restoring.body['operation'] as { id: string }
    await until(
      async () => (await platform.call('GET', `/v1/operations/${id}`)).body['step'] === 'database',
      'the step of the database',
      60_000,
    )
    await platform.kill(container)
    const operation = await ended(platform, restoring, 300)
    t.comment(`the operation has ${String(operation['state'])}: ${String(operation['error'])}`)
    await platform.until(ada.id, ({ status }) => status === 'ready', 120)
    if (operation['state'] !== 'succeeded') {
      const again = await platform.call('POST', `/v1/backups/${backupId}/restore`, { into: 'same' })
      t.match(await ended(platform, again, 300), { state: 'succeeded', error: null })
    }
    await isAsBefore(t, ada)
    t.same(await remainingDatabases(ada), [])
  })

  await t.test('a restore into a new cluster begins with the restored data, and its members copy it', async (t) => {
    const restored = await platform.call('POST', `/v1/backups/${backupId}/restore`, { into: { name: 'grace' } })
    t.match(await ended(platform, restored, 300), { state: 'succeeded', error: null })
    const grace = toOwner(restored.body)
    t.match(
      await platform.until(grace.id, (tenant) =>
        (tenant['conditions'] as { type: string; status: string }[]).some(
          ({ type, status }) => type === 'Replicating' && status === 'True',
        ),
      ),
      { isolation: 'cluster-per-tenant', status: 'ready' },
    )
    await isAsBefore(t, grace)
    const switched = await platform.call('POST', `/v1/tenants/${grace.id}/switchover`, undefined, { prefer: 'wait=60' })
    t.match(switched.body, { operation: { state: 'succeeded' } })
    await query(grace.url, 'create table later (number int)')
    t.equal((await platform.call('DELETE', `/v1/tenants/${grace.id}?purge=true`)).status, 202)
    await platform.until(grace.id, ({ error }) => error !== undefined, 120)
  })

  await t.test('a restore into a new tenant with a database of its own loses nothing', async (t) => {
    const into = { name: 'hopper', isolation: 'database-per-tenant' }
    const restored = await platform.call('POST', `/v1/backups/${backupId}/restore`, { into })
    t.match(await ended(platform, restored), { state: 'succeeded', error: null })
    await isAsBefore(t, toOwner(restored.body))
  })
})
