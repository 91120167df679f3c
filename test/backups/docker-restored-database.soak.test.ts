// The control database is restored from an older copy, or is empty on a new host. No backup is deleted: backups that the database
// does not know are quarantined and listed, and can be adopted and restored.
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'
import {
  createOwner,
  ended,
  filesBelow,
  furnish,
  seen,
  startBackupPlatform,
  toOwner,
  type BackupPlatform,
} from './support/tenants.ts'

const installation = '6f0c2f0e-4d8c-4f0e-9a51-0d6f3a1c2b77'

t.test('the control database is restored from a copy', async (t) => {
  const platform = await startBackupPlatform(t, { environment: { TENANTRY_INSTALLATION: installation } })
  const ada = await createOwner(platform, 'ada')
  await furnish(platform, ada, 100_000)
  const before = await seen(platform, ada)
  const take = async () => {
    const response = await platform.call('POST', `/v1/tenants/${ada.id}/backups`)
    t.match(await ended(platform, response), { state: 'succeeded' })
    return String(response.body['id'])
  }
  const first = await take()
  await replaceDatabase(platform, 'create database control_copy template control')
  const second = await take()
  const files = await contents(platform)
  t.equal(files.size, 10, 'each backup has four parts and a record')

  t.test('a backup that is newer than the copy is quarantined unchanged, and listed', async (t) => {
    await replaceDatabase(platform, 'drop database control', 'create database control template control_copy')
    await untilListed(platform, 'unknown', [second])
    t.same(await contents(platform), files, 'no byte is lost')
    t.match(await platform.call('GET', '/v1/backups?state=unknown'), {
      body: {
        backups: [
          {
            id: second,
            state: 'unknown',
            tenant_id: ada.id,
            tenant_name: 'ada',
            plan: 'Pro',
            isolation: 'database-per-tenant',
            region: 'local',
            adoptable: true,
            problem: null,
          },
        ],
        next_cursor: null,
      },
    })
    t.match(await platform.call('GET', '/v1/backups'), { body: { backups: [{ id: first, state: 'complete' }] } })
    await until(async () => (await metrics(platform)).includes('tenantry_backups_unknown 1\n'))
    t.match(await platform.call('POST', `/v1/backups/${second}/restore`, { into: 'same' }), {
      status: 409,
      body: { code: 'BACKUP_NOT_ADOPTED' },
    })
  })

  t.test('the backup can be adopted and restored into a new tenant without loss', async (t) => {
    t.match(await platform.call('POST', `/v1/backups/${second}/adopt`), {
      status: 200,
      body: { id: second, state: 'complete', tenant_id: ada.id },
    })
    t.match(await platform.call('POST', `/v1/backups/${second}/adopt`), { status: 200 }, 'a repeat changes nothing')
    await untilListed(platform, 'unknown', [])
    t.match(await platform.call('GET', `/v1/tenants/${ada.id}/backups`), {
      body: { backups: [{ id: first }, { id: second }] },
    })
    const response = await platform.call('POST', `/v1/backups/${second}/restore`, { into: { name: 'grace' } })
    t.match(await ended(platform, response), { state: 'succeeded' })
    t.same(await seen(platform, toOwner(response.body)), before)
  })

  t.test('an empty database deletes no backup, and a restored copy finds them again', async (t) => {
    await replaceDatabase(platform, 'drop database control', 'create database control')
    await until(() =>
      readdir(join(platform.directory, 'quarantine')).then(
        (names) => names.length === 2,
        () => false,
      ),
    )
    t.same(await contents(platform), files)
    await replaceDatabase(platform, 'drop database control', 'create database control template control_copy')
    await untilListed(platform, 'unknown', [second])
    t.match(await ended(platform, await platform.call('POST', `/v1/backups/${first}/verify`)), { state: 'succeeded' })
  })

  t.test('a backup whose files are missing is still listed', async (t) => {
    await platform.stopControlPlanes()
    await rm(join(platform.directory, first), { recursive: true })
    await platform.startControlPlane()
    await untilListed(platform, 'missing', [first])
    t.match(await platform.call('GET', `/v1/backups/${first}`), { body: { state: 'complete' } })
    await until(async () => (await metrics(platform)).includes('tenantry_backups_missing 1\n'))
  })
})

/** Stops the control plane, runs the statements, and starts it again. */
async function replaceDatabase(platform: BackupPlatform, ...statements: string[]): Promise<void> {
  await platform.stopControlPlanes()
  for (const statement of statements) await query(platform.postgres.url('postgres'), statement)
  await platform.startControlPlane()
}

async function untilListed(platform: BackupPlatform, state: string, ids: readonly string[]): Promise<void> {
  await until(async () => {
    const { body } = await platform.call('GET', `/v1/backups?state=${state}`)
    const listed = (body['backups'] as { id: string }[]).map(({ id }) => id)
    return JSON.stringify(listed) === JSON.stringify(ids)
  })
}

/** Returns the content of every file by backup and part, whether quarantined or not. */
async function contents(platform: BackupPlatform): Promise<Map<string, string>> {
  const files = await filesBelow(platform.directory)
  return new Map(
    [...files].map(([file, bytes]) => [
      file.slice(platform.directory.length + 1).replace('quarantine/', ''),
      bytes.toString('base64'),
    ]),
  )
}

async function metrics({ controlUrl, platformKey }: BackupPlatform): Promise<string> {
  return (await fetch(`${controlUrl}/metrics`, { headers: { authorization: `Bearer ${platformKey}` } })).text()
}
