// Homes from before the events of files and SQL tables have them after they are migrated.
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import t from 'tap'
import { firstMigrationsSql, loadHomeMigrations, ownTarget } from '#control-plane/homes/home-migrations.ts'
import { createNewHomeSql } from '#control-plane/homes/home-sql.ts'
import { homeRoles } from '#control-plane/homes/home-roles.ts'
import { scramVerifier } from '#control-plane/homes/scram.ts'
import { migrateHome, migrationsDirectory } from '#test/support/home.ts'
import { query, startPostgres } from '#test/support/postgres.ts'

t.test('A home of version 20 is migrated with its rows, and then writes events', async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  const id = `t_${randomBytes(10).toString('hex')}`
  const verifier = scramVerifier('secret', randomBytes(16))
  const old = (await loadHomeMigrations(migrationsDirectory)).filter(({ version }) => version <= 20)
  await query(
    postgres.url('homes'),
    createNewHomeSql(
      id,
      { runtime: verifier, ddl: verifier, admin: verifier },
      { runtime: 5, ddl: 4, admin: 10 },
      firstMigrationsSql(ownTarget(id), old),
    ),
  )
  const url = (role: string) => `postgresql://${role}:secret@127.0.0.1:${postgres.port}/homes`
  const admin = new pg.Client({ connectionString: url(homeRoles(id).admin) })
  const runtime = new pg.Client({ connectionString: url(homeRoles(id).runtime) })
  for (const client of [admin, runtime]) {
    await client.connect()
    t.teardown(() => client.end())
  }
  await admin.query('create table cards (id int primary key, title text)')
  await runtime.query(`select set_config('search_path', $1, false), set_config('app.tenant_id', $1, false)`, [id])
  await runtime.query(`select set_config('app.role', 'service_role', false)`)
  await runtime.query(`insert into storage_buckets (name, policy) values ('photos', 'public')`)
  await runtime.query(`insert into event_log (type, payload) values ('test', '{}')`)

  const report = await migrateHome(postgres.url('postgres'), id)
  t.same(report, { lost: [] })
  t.same(await query(postgres.url('homes'), `select * from "${id}".home_problems()`), [])

  await runtime.query(`update storage_buckets set policy = 'private' where name = 'photos'`)
  await admin.query(`select realtime_follow('cards', 'anyone')`)
  await admin.query(`insert into cards values (1, 'one')`)
  const { rows } = await runtime.query(
    `select type, readers, counterpart, payload ->> 'collection' as collection, payload -> 'id' as id from event_log order by seq`,
  )
  t.match(rows, [
    { type: 'test', counterpart: null },
    { type: 'record.deleted', readers: 'anyone', counterpart: { owner_id: null, readers: 'owner' } },
    { type: 'record.inserted', readers: 'owner', collection: 'storage_buckets' },
    { type: 'record.inserted', readers: 'anyone', collection: 'cards', id: 1 },
  ])
})
