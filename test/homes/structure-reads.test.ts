// The check of a home reads what belongs to the home, and never a whole catalog, which contains the objects of all homes.
import pg from 'pg'
import t from 'tap'
import { violationsSql } from '#control-plane/homes/home-migrations.ts'
import { createHome } from '#test/support/home.ts'
import { startPostgres } from '#test/support/postgres.ts'

/** Reads how often the session has read each catalog from its begin to its end, and by an index. */
async function scans(client: pg.Client): Promise<Map<string, { whole: number; byIndex: number }>> {
  const { rows } = await client.query<{ name: string; whole: string; by_index: string }>(
    `select relname as name, seq_scan as whole, idx_scan as by_index from pg_stat_xact_sys_tables where schemaname = 'pg_catalog'`,
  )
  return new Map(rows.map((row) => [row.name, { whole: Number(row.whole), byIndex: Number(row.by_index) }]))
}

t.test('The check of a home reads no catalog from its begin to its end', async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  const { tenantId, url } = await createHome(postgres)
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    // A session reads some of the catalogs once.
    t.same((await client.query(violationsSql(tenantId))).rows, [])
    await client.query('begin')
    const counts = [await scans(client), await scans(client)]
    await client.query(violationsSql(tenantId))
    counts.push(await scans(client))
    const [first, second, third] = counts.map((read) => (name: string) => read.get(name) ?? { whole: 0, byIndex: 0 })
    const catalogs = ['pg_attribute', 'pg_attrdef', 'pg_class', 'pg_constraint', 'pg_depend', 'pg_index']
    for (const name of [...catalogs, 'pg_policy', 'pg_proc', 'pg_rewrite', 'pg_trigger']) {
      const [before, after] = [second?.(name), third?.(name)]
      const ownReads = (before?.whole ?? 0) - (first?.(name).whole ?? 0)
      t.equal((after?.whole ?? 0) - (before?.whole ?? 0), ownReads, `${name} is not read as a whole`)
      t.ok((after?.byIndex ?? 0) > (before?.byIndex ?? 0), `${name} is read by an index`)
    }
  } finally {
    await client.end()
  }
})
