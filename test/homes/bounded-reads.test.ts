// However much is wrong with a home, the control plane reads only the first violations of it.
import t from 'tap'
import { HomeDatabases } from '#control-plane/homes/home-databases.ts'
import { violationsSql } from '#control-plane/homes/home-migrations.ts'
import { HomeError } from '#control-plane/homes/home-report.ts'
import { createHome } from '#test/support/home.ts'
import { query, startPostgres } from '#test/support/postgres.ts'

t.test('A home with many violations is reported with the first of them', async (t) => {
  const postgres = await startPostgres()
  const homes = new HomeDatabases(postgres.url('postgres'), [])
  t.teardown(async () => {
    await homes.close()
    await postgres.stop()
  })
  const home = await createHome(postgres)
  t.same(await query(home.url, violationsSql(home.tenantId)), [])
  await query(
    postgres.url('homes'),
    `set role "${home.tenantId}_system"; set search_path = "${home.tenantId}";
     do $$ begin for i in 1..300 loop
       execute format('create function %I() returns integer language sql as ''select 1''', 'f' || i || repeat('x', 50));
     end loop; end $$`,
  )
  const rows = await query(home.url, violationsSql(home.tenantId))
  t.equal(rows.length, 50)
  t.ok(rows.every(({ problem }) => String(problem).length <= 300))
  const error: unknown = await homes.checkLogin('homes', home.tenantId, new URL(home.url).password).then(
    () => undefined,
    (error: unknown) => error,
  )
  t.ok(error instanceof HomeError && error.message.length < 1_000, String(error))
})
