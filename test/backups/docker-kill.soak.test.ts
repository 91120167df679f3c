// When the control plane is killed while it takes, verifies or restores a backup, the work converges and leaves nothing behind.
import t from 'tap'
import { until } from '#test/support/until.ts'
import { startKills } from './support/kills.ts'
import { ended, filesBelow, scratchObjects, seen, toOwner } from './support/tenants.ts'

t.test('backups and kills', async (t) => {
  const { platform, ada, before, backupId, interrupted } = await startKills(t)

  t.test('a control plane that is killed while it takes a backup removes it at its next start', async (t) => {
    const { response, operation } = await interrupted('files', `/v1/tenants/${ada.id}/backups`)
    t.match(operation, { state: 'failed', error: /The control plane stopped/, attempts: 1 })
    t.match(await platform.call('GET', `/v1/backups/${String(response.body['id'])}`), { body: { state: 'failed' } })
    await until(async () => [...(await filesBelow(platform.directory)).keys()].every((file) => file.includes(backupId)))
    t.match(
      await ended(platform, await platform.call('POST', `/v1/tenants/${ada.id}/backups`)),
      { state: 'succeeded' },
      'the next backup succeeds',
    )
  })

  t.test('a control plane that is killed while it verifies begins again', async (t) => {
    const { operation } = await interrupted('database', `/v1/backups/${backupId}/verify`)
    t.match(operation, { state: 'succeeded' })
    t.ok(Number(operation['attempts']) >= 2, 'the operation was interrupted')
    t.same(await scratchObjects(platform), [])
  })

  t.test('a control plane that is killed while it restores into a new tenant begins again', async (t) => {
    for (const step of ['database', 'handover']) {
      const { response, operation } = await interrupted(step, `/v1/backups/${backupId}/restore`, {
        into: { name: `copy-${step}` },
      })
      t.match(operation, { state: 'succeeded' }, step)
      if (step === 'database') t.ok(Number(operation['attempts']) >= 2, 'the operation was interrupted')
      const copy = toOwner(response.body)
      t.same(await seen(platform, copy), before)
      await platform.call('DELETE', `/v1/tenants/${copy.id}?purge=true`)
    }
  })
})
