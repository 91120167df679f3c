// When the control plane is killed while it replaces a tenant's home with a backup, exactly one home remains, the restored one.
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { startKills } from './support/kills.ts'
import { seen } from './support/tenants.ts'

t.test('a restore in place completes after a kill at each step', async (t) => {
  const { platform, ada, before, backupId, interrupted } = await startKills(t)
  for (const step of ['database', 'replace', 'renew', 'clean up']) {
    const { operation } = await interrupted(step, `/v1/backups/${backupId}/restore`, { into: 'same' })
    t.match(operation, { state: 'succeeded' }, step)
    if (step === 'database') t.ok(Number(operation['attempts']) >= 2, 'the restore was interrupted')
    t.same(await seen(platform, ada), before, `${step}: no data is lost`)
    t.same(
      await query(ada.url, "select datname from pg_database where datname ~ '_' and datname !~ '^template'"),
      [],
      `${step}: no other database remains`,
    )
  }
})
