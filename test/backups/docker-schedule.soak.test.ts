// Backups by the tenants' own schedules: one for each planned time, of paused tenants too, and no more kept than asked for.
import t from 'tap'
import { until } from '#test/support/until.ts'
import {
  createOwner,
  ended,
  filesBelow,
  seen,
  startBackupPlatform,
  furnish,
  type BackupPlatform,
} from './support/tenants.ts'

const hourly = '0 * * * *'

t.test('scheduled backups', async (t) => {
  const platform = await startBackupPlatform(t)
  const ada = await createOwner(platform, 'ada')
  await furnish(platform, ada, 1000)
  /** The schedule was followed up to so many hours ago. */
  const missed = (hours: number) =>
    platform.sql(
      `update tenants set backup_schedule = $2, backup_seen_schedule = $2,
        backup_seen_at = now() - make_interval(hours => $3) where id = $1`,
      [ada.id, hourly, hours],
    )

  t.test('a schedule that is new begins now', async (t) => {
    await platform.sql('update tenants set backup_schedule = $2 where id = $1', [ada.id, hourly])
    await until(
      async () =>
        (await platform.sql('select backup_seen_schedule from tenants where id = $1', [ada.id]))[0]?.[
          'backup_seen_schedule'
        ] === hourly,
    )
    t.same(await backups(platform), [])
  })

  t.test('what was missed while no control plane ran is made once at its start', async (t) => {
    await platform.stopControlPlanes()
    await missed(5)
    await platform.startControlPlane()
    await complete(platform, 1)
    await platform.stopControlPlanes()
    await platform.sql('update tenants set backup_seen_at = now() - make_interval(hours => 3) where id = $1', [ada.id])
    await platform.startControlPlane()
    await seenAgain(platform, ada.id)
    const [backup, ...others] = await backups(platform)
    t.same(others, [], 'a planned time has one, whatever is remembered of it')
    t.match(backup, { state: 'complete', trigger: 'schedule' })
    t.equal(new Date(String(backup?.['planned_at'])).getUTCMinutes(), 0)
    const response = await platform.call('POST', `/v1/backups/${String(backup?.['id'])}/verify`)
    t.match(await ended(platform, response), { state: 'succeeded' })
  })

  t.test('a paused tenant that was used since is woken for it, and paused again', async (t) => {
    const before = await seen(platform, ada)
    await platform.call('POST', `/v1/tenants/${ada.id}/pause`)
    await platform.until(ada.id, ({ status }) => status === 'paused')
    await platform.sql('update backups set planned_at = planned_at - make_interval(hours => 100)')
    await missed(3)
    await complete(platform, 2)
    await platform.until(ada.id, ({ status }) => status === 'paused')
    const kinds = await platform.sql(
      "select kind, state from operations where tenant_id = $1 and kind in ('wake', 'pause', 'backup') order by created_at",
      [ada.id],
    )
    t.same(
      kinds.map(({ kind, state }) => `${String(kind)} ${String(state)}`),
      ['backup succeeded', 'pause succeeded', 'backup succeeded', 'wake succeeded', 'pause succeeded'],
    )

    await platform.sql('update backups set planned_at = planned_at - make_interval(hours => 100), created_at = now()')
    await missed(3)
    await seenAgain(platform, ada.id)
    t.equal((await backups(platform)).length, 2, 'one that has not changed since is left alone')
    await platform.call('POST', `/v1/tenants/${ada.id}/wake`)
    await platform.until(ada.id, ({ status }) => status === 'ready')
    t.same(await seen(platform, ada), before)
  })

  t.test('the newest are kept, and what an operator asked for', async (t) => {
    t.match(await ended(platform, await platform.call('POST', `/v1/tenants/${ada.id}/backups`)), { state: 'succeeded' })
    await platform.sql('update tenants set backups_kept = 1 where id = $1', [ada.id])
    await platform.sql(
      'update backups set created_at = created_at - make_interval(hours => 10), planned_at = planned_at - make_interval(hours => 100)',
    )
    await missed(3)
    await until(
      async () =>
        (await backups(platform)).filter(({ trigger, state }) => trigger === 'schedule' && state === 'complete')
          .length === 1 && !(await busy(platform)),
    )
    const stored = await backups(platform)
    t.same(stored.map(({ trigger, state }) => `${String(trigger)} ${String(state)}`).sort(), [
      'request complete',
      'schedule complete',
    ])
    const directories = new Set(
      [...(await filesBelow(platform.directory)).keys()].map(
        (file) => file.slice(platform.directory.length).split('/')[1],
      ),
    )
    t.same([...directories].sort(), stored.map(({ id }) => id).sort())
  })
})

const backups = (platform: BackupPlatform) =>
  platform.sql('select id, state, trigger, planned_at from backups order by created_at')

async function busy(platform: BackupPlatform): Promise<boolean> {
  return (await platform.sql("select from operations where state in ('pending', 'running')")).length > 0
}

async function complete(platform: BackupPlatform, count: number): Promise<void> {
  await until(
    async () =>
      (await backups(platform)).filter(({ state }) => state === 'complete').length === count && !(await busy(platform)),
  )
}

/** Until the keeper has looked at the schedule. */
async function seenAgain(platform: BackupPlatform, tenantId: string): Promise<void> {
  await until(async () => {
    const [row] = await platform.sql(
      'select backup_seen_at > now() - make_interval(mins => 61) as seen from tenants where id = $1',
      [tenantId],
    )
    return row?.['seen'] === true && !(await busy(platform))
  })
}
