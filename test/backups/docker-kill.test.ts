// The control plane killed while it takes, verifies or restores a backup: everything converges, and nothing is left.
import t from 'tap'
import { query } from '../support/postgres.ts'
import { createOwner, ended, filesBelow, furnish, scratchObjects, seen, startBackupPlatform, toOwner, until, type BackupPlatform } from './support/tenants.ts'

const megabyte = 2 ** 20

t.test('backups and kills', async (t) => {
  const platform = await startBackupPlatform(t)
  const ada = await createOwner(platform, 'ada')
  await furnish(platform, ada, 12 * megabyte)
  const before = await seen(platform, ada)
  const taken = await platform.call('POST', `/v1/tenants/${ada.id}/backups`)
  const backupId = String(taken.body['id'])
  t.match(await ended(platform, taken), { state: 'succeeded' })
  await platform.stopControlPlanes()
  let plane = await platform.startControlPlane()
  /** @returns how often it was begun */
  const killAt = async (step: string, path: string, body: unknown) => {
    const answer = await platform.call('POST', path, body)
    await atStep(platform, answer, step)
    await plane.kill()
    plane = await platform.startControlPlane()
    const operation = await ended(platform, answer)
    t.match(operation, { state: 'succeeded' }, `killed at ${step}`)
    return { answer, attempts: Number(operation['attempts']) }
  }

  t.test('while it takes one, it removes it at its next start', async (t) => {
    const answer = await platform.call('POST', `/v1/tenants/${ada.id}/backups`)
    await atStep(platform, answer, 'files')
    await plane.kill()
    plane = await platform.startControlPlane()
    t.match(await ended(platform, answer), { state: 'failed', error: /the control plane ended/ })
    t.match(await platform.call('GET', `/v1/backups/${String(answer.body['id'])}`), { body: { state: 'failed' } })
    await until(async () => [...(await filesBelow(platform.directory)).keys()].every((file) => file.includes(backupId)))
    t.match(await ended(platform, await platform.call('POST', `/v1/tenants/${ada.id}/backups`)), { state: 'succeeded' }, 'the next one is good')
  })

  t.test('while it verifies, it begins anew', async (t) => {
    const { attempts } = await killAt('database', `/v1/backups/${backupId}/verify`, undefined)
    t.ok(attempts >= 2, 'it was interrupted')
    t.same(await scratchObjects(platform), [])
  })

  t.test('while it restores into a new tenant, it begins anew', async (t) => {
    for (const step of ['database', 'files', 'handover']) {
      const { answer, attempts } = await killAt(step, `/v1/backups/${backupId}/restore`, { into: { name: `copy-${step}` } })
      if (step === 'database') t.ok(attempts >= 2, 'it was interrupted')
      const copy = toOwner(answer.body)
      t.same(await seen(platform, copy), before)
      await platform.call('DELETE', `/v1/tenants/${copy.id}?purge=true`)
    }
  })

  t.test('while it replaces a home, one home is left, and it is the right one', async (t) => {
    for (const step of ['database', 'replace', 'renew', 'clean up']) {
      const { attempts } = await killAt(step, `/v1/backups/${backupId}/restore`, { into: 'same' })
      if (step === 'database') t.ok(attempts >= 2, 'it was interrupted')
      t.same(await seen(platform, ada), before)
      t.same(await query(ada.url, "select datname from pg_database where datname ~ '_' and datname !~ '^template'"), [], step)
    }
  })
})

/** Until the operation has come to a step, or has ended: then the step was too quick to be met. */
async function atStep(platform: BackupPlatform, { body }: { body: Record<string, unknown> }, step: string): Promise<void> {
  const { id } = body['operation'] as { id: string }
  await until(async () => {
    const [row] = await platform.sql('select step, finished_at from operations where id = $1', [id])
    return row?.['step'] === step || row?.['finished_at'] !== null
  })
}
