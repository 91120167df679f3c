// A repair reports a home that is missing from its database and creates no empty one. It completes a home that exists.
import t from 'tap'
import { HomeDatabases } from '#control-plane/homes/home-databases.ts'
import { loadHomeMigrations } from '#control-plane/homes/home-migrations.ts'
import { homeRoles } from '#control-plane/homes/home-roles.ts'
import { createHome, migrationsDirectory } from '#test/support/home.ts'
import { query, startPostgres } from '#test/support/postgres.ts'

const passwords = { runtime: 'of-the-runtime', ddl: 'of-the-ddl', admin: 'of-the-admin' }

t.test('a repair of a home', async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  const homes = new HomeDatabases(postgres.url('postgres'), await loadHomeMigrations(migrationsDirectory))
  t.teardown(() => homes.close())
  const count = async (sql: string) =>
    (await query(postgres.url('homes'), `select count(*)::int as n from ${sql}`))[0]?.['n']

  await t.test('without its schema creates nothing', async (t) => {
    const id = 't_00000000000000000001'
    t.equal(await homes.repairHome('homes', id, passwords), 'missing')
    t.equal(await count(`pg_namespace where nspname = '${id}'`), 0)
    t.equal(await count(`pg_roles where rolname like '${id}%'`), 0)
  })

  await t.test('that exists restores its logins, and keeps its rows', async (t) => {
    const { tenantId } = await createHome(postgres)
    const { runtime } = homeRoles(tenantId)
    await query(
      postgres.url('homes'),
      `create table "${tenantId}".notes as select 1 as id; alter role "${runtime}" nologin`,
    )
    await t.rejects(homes.checkLogin('homes', tenantId, passwords.runtime))
    t.equal(await homes.repairHome('homes', tenantId, passwords), 'to be migrated')
    await t.resolves(homes.checkLogin('homes', tenantId, passwords.runtime))
    t.equal(await count(`"${tenantId}".notes`), 1)
    t.equal(await homes.createHome('homes', tenantId, passwords), 'to be migrated', 'an interrupted creation continues')
    t.equal(await count(`"${tenantId}".notes`), 1)
  })
})
