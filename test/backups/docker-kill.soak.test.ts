// The control plane killed while it takes, verifies or restores a backup: everything converges, and nothing is left.
import t from 'tap'
import { until } from '#test/support/until.ts'
import { startKills } from './support/kills.ts'
import { ended, filesBelow, scratchObjects, seen, toOwner } from './support/tenants.ts'

t.test('backups and kills', async (t) => {
  const { platform, ada, before, backupId, interrupted } = await startKills(t)

  t.test('while it takes one, it removes it at its next start', async (t) => {
    const { response, operation } = await interrupted('files', `/v1/tenants/${ada.id}/backups`)
    t.match(operation, { state: 'failed', error: /the control plane ended/, attempts: 1 })
    t.match(await platform.call('GET', `/v1/backups/${String(response.body['id'])}`), { body: { state: 'failed' } })
    await until(async () => [...(await filesBelow(platform.directory)).keys()].every((file) => file.includes(backupId)))
    t.match(
      await ended(platform, await platform.call('POST', `/v1/tenants/${ada.id}/backups`)),
      { state: 'succeeded' },
      'the next one is good',
    )
  })

  t.test('while it verifies, it begins anew', async (t) => {
    const { operation } = await interrupted('database', `/v1/backups/${backupId}/verify`)
    t.match(operation, { state: 'succeeded' })
    t.ok(Number(operation['attempts']) >= 2, 'it was interrupted')
    t.same(await scratchObjects(platform), [])
  })

  t.test('while it restores into a new tenant, it begins anew', async (t) => {
    for (const step of ['database', 'handover']) {
      const { response, operation } = await interrupted(step, `/v1/backups/${backupId}/restore`, {
        into: { name: `copy-${step}` },
      })
      t.match(operation, { state: 'succeeded' }, step)
      if (step === 'database') t.ok(Number(operation['attempts']) >= 2, 'it was interrupted')
      const copy = toOwner(response.body)
      t.same(await seen(platform, copy), before)
      await platform.call('DELETE', `/v1/tenants/${copy.id}?purge=true`)
    }
  })
})
