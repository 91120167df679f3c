// Tenants' schedules take one backup for each planned time, also of paused tenants, and retain only the configured number.
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
  /** Sets the time until which the schedule was followed to `hours` ago. */
  const missed = (hours: number) =>
    platform.sql(
      `update tenants set backup_schedule = $2, backup_seen_schedule = $2,
        backup_seen_at = now() - make_interval(hours => $3) where id = $1`,
      [ada.id, hourly, hours],
    )

  t.test('a new schedule begins now', async (t) => {
    await platform.sql('update tenants set backup_schedule = $2 where id = $1', [ada.id, hourly])
    await until(
      async () =>
        (await platform.sql('select backup_seen_schedule from tenants where id = $1', [ada.id]))[0]?.[
          'backup_seen_schedule'
        ] === hourly,
    )
    t.same(await backups(platform), [])
  })

  t.test('missed backups are made once when the control plane starts', async (t) => {
    await platform.stopControlPlanes()
    await missed(5)
    await platform.startControlPlane()
    await untilComplete(platform, 1)
    await platform.stopControlPlanes()
    await platform.sql('update tenants set backup_seen_at = now() - make_interval(hours => 3) where id = $1', [ada.id])
    await platform.startControlPlane()
    await untilFollowed(platform, ada.id)
    const [backup, ...others] = await backups(platform)
    t.same(others, [], 'each planned time has one backup')
    t.match(backup, { state: 'complete', trigger: 'schedule' })
    t.equal(new Date(String(backup?.['planned_at'])).getUTCMinutes(), 0)
    const response = await platform.call('POST', `/v1/backups/${String(backup?.['id'])}/verify`)
    t.match(await ended(platform, response), { state: 'succeeded' })
  })

  t.test('a paused tenant that was used since its last backup is woken for a backup, and paused again', async (t) => {
    const before = await seen(platform, ada)
    await platform.call('POST', `/v1/tenants/${ada.id}/pause`)
    await platform.until(ada.id, ({ status }) => status === 'paused')
    await platform.sql('update backups set planned_at = planned_at - make_interval(hours => 100)')
    await missed(3)
    await untilComplete(platform, 2)
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
    await untilFollowed(platform, ada.id)
    t.equal((await backups(platform)).length, 2, 'a paused tenant without changes has no new backup')
    await platform.call('POST', `/v1/tenants/${ada.id}/wake`)
    await platform.until(ada.id, ({ status }) => status === 'ready')
    t.same(await seen(platform, ada), before)
  })

  t.test('the newest scheduled backups and all requested ones are retained', async (t) => {
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

async function untilComplete(platform: BackupPlatform, count: number): Promise<void> {
  await until(
    async () =>
      (await backups(platform)).filter(({ state }) => state === 'complete').length === count && !(await busy(platform)),
  )
}

/** Waits until the scheduler has followed the schedule. */
async function untilFollowed(platform: BackupPlatform, tenantId: string): Promise<void> {
  await until(async () => {
    const [row] = await platform.sql(
      'select backup_seen_at > now() - make_interval(mins => 61) as seen from tenants where id = $1',
      [tenantId],
    )
    return row?.['seen'] === true && !(await busy(platform))
  })
}
