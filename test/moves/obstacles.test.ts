// The size of a home that the log of a real Postgres can hold while the home is copied.
import t from 'tap'
import { obstacleSql } from '#control-plane/moves/move-sql.ts'
import { query, startPostgres } from '#test/support/postgres.ts'

t.test('A home that is larger than the log that a move may retain cannot be moved', async (t) => {
  const server = await startPostgres({ wal_level: 'logical', max_slot_wal_keep_size: '2MB' })
  t.teardown(() => server.stop())
  const url = server.url('homes')
  const fill = (schema: string, rows: number) =>
    query(
      url,
      `create schema ${schema};
       create table ${schema}.notes as select repeat('x', 1000) as body from generate_series(1, ${rows})`,
    )
  await fill('small', 1_000)
  await fill('large', 2_000)
  t.same(await query(url, obstacleSql, ['"small"']), [])
  const [obstacle] = await query(url, obstacleSql, ['"large"'])
  t.match(obstacle, { what: /^The home has \d{7} bytes\. .* max_slot_wal_keep_size lets a move retain 2097152\.$/ })
})
