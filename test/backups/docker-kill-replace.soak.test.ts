// The control plane killed while it puts a backup in the place of a tenant's home: one home is left, and it is the right one.
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { startKills } from './support/kills.ts'
import { seen } from './support/tenants.ts'

t.test('a home that is replaced while the control plane is killed', async (t) => {
  const { platform, ada, before, backupId, interrupted } = await startKills(t)
  for (const step of ['database', 'replace', 'renew', 'clean up']) {
    const { operation } = await interrupted(step, `/v1/backups/${backupId}/restore`, { into: 'same' })
    t.match(operation, { state: 'succeeded' }, step)
    if (step === 'database') t.ok(Number(operation['attempts']) >= 2, 'it was interrupted')
    t.same(await seen(platform, ada), before, `${step}: all is there`)
    t.same(
      await query(ada.url, "select datname from pg_database where datname ~ '_' and datname !~ '^template'"),
      [],
      `${step}: and nothing else`,
    )
  }
})
