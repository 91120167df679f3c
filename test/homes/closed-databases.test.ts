// A tenant's login can connect only to the database of its home. Databases whose creation was interrupted are closed, and a
// control plane closes open databases when it starts.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import pg from 'pg'
import t, { type Test } from 'tap'
import { ensureClosedDatabase } from '#control-plane/platform/closed-databases.ts'
import { query, startPostgres } from '#test/support/postgres.ts'
import { startPlatform } from '#test/support/platform.ts'
import { until } from '#test/support/until.ts'

const killedBetween = new URL('support/killed-between.ts', import.meta.url).pathname

async function isDenied(t: Test, url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => undefined)
  await t.rejects(
    client.connect(),
    /permission denied for database|not currently accepting connections/,
    `a login into ${new URL(url).pathname}`,
  )
  await client.end().catch(() => undefined)
}

t.test('a database whose creation is killed is closed to tenants, and can be completed', async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  await query(postgres.url('postgres'), "create role other_tenant login password 'secret'")
  const login = (database: string) => `postgresql://other_tenant:secret@127.0.0.1:${postgres.port}/${database}`

  const [code, signal] = (await once(
    spawn(process.execPath, [killedBetween, postgres.url('postgres'), 'halfway'], { stdio: 'inherit' }),
    'exit',
  )) as [number | null, string | null]
  t.same([code, signal], [null, 'SIGKILL'])
  t.equal(
    (await query(postgres.url('postgres'), "select datname from pg_database where datname = 'halfway'")).length,
    1,
    'the database exists',
  )
  await isDenied(t, login('halfway'))

  const client = new pg.Client({ connectionString: postgres.url('postgres') })
  await client.connect()
  t.teardown(() => client.end())
  await ensureClosedDatabase(client, 'halfway')
  await isDenied(t, login('halfway'))
  t.same(await query(postgres.url('halfway'), 'select 1 as value'), [{ value: 1 }], 'its owner can connect')
  const rights = `select has_database_privilege('other_tenant', 'halfway', right_name) as has
      from unnest(array['connect', 'temporary', 'create']) as right_name`
  t.same(await query(postgres.url('postgres'), rights), [{ has: false }, { has: false }, { has: false }])
})

t.test('a control plane closes open databases when it starts', { timeout: 120_000 }, async (t) => {
  const platform = await startPlatform()
  t.teardown(() => platform.stop())
  const first = await platform.startControlPlane()
  const { body } = await platform.call(
    'POST',
    '/v1/tenants',
    { name: 'curious', plan: 'Free', region: 'local' },
    { prefer: 'wait=20' },
  )
  const own = new URL(String(body['database_url']))
  first.process.kill('SIGKILL')
  await first.exited

  const superuser = platform.postgres.url('postgres')
  await query(superuser, 'create database home')
  const granted = ['pg_logical_emit_message(boolean, text, text, boolean)', 'pg_export_snapshot()', 'lo_create(oid)']
  for (const database of ['control', 'template1', platform.homesDatabase])
    await query(
      platform.postgres.url(database),
      granted.map((signature) => `grant execute on function pg_catalog.${signature} to public`).join(';'),
    )
  await query(
    platform.postgres.url(platform.homesDatabase),
    'drop event trigger tenantry_limit_objects; drop schema tenantry cascade',
  )
  const open = ['control', 'home', 'postgres', 'template1', platform.homesDatabase]
  for (const database of open) await query(superuser, `grant all on database "${database}" to public`)
  await query(platform.postgres.url(platform.homesDatabase), 'grant all on schema public to public')

  const second = await platform.startControlPlane()
  const url = (database: string) => Object.assign(new URL(own), { pathname: `/${database}` }).href
  const openNow = async () =>
    (
      await query(
        superuser,
        `select datname from pg_database where datallowconn
          and exists (select from aclexplode(coalesce(datacl, acldefault('d', datdba))) where grantee = 0)`,
      )
    ).length
  await until(async () => (await openNow()) === 0)
  for (const database of open.slice(0, -1)) await isDenied(t, url(database))
  await until(
    async () =>
      (
        await query(
          platform.postgres.url(platform.homesDatabase),
          "select has_schema_privilege($1, 'public', 'create') as has",
          [own.username],
        )
      )[0]?.['has'] === false,
  )
  await t.rejects(query(own.href, 'create temporary table room (a int)'), /permission denied/)
  t.same(await query(own.href, 'select 1 as value'), [{ value: 1 }], 'the tenant can connect to its own database')

  const everywhere = ['control', 'home', 'postgres', 'template1', platform.homesDatabase]
  const openFunctions = async (database: string) =>
    await query(
      platform.postgres.url(database),
      `select signature from unnest($1::text[]) as signature
        where has_function_privilege('public', 'pg_catalog.' || signature, 'execute')`,
      [[...granted, 'pg_advisory_lock(bigint)', 'pg_lock_status()']],
    )
  await until(async () => (await Promise.all(everywhere.map(openFunctions))).every((open) => open.length === 0))
  await until(
    () => /template1: pg_export_snapshot.*Functions were open to every login/.test(second.output()),
    second.output(),
  )
  await t.rejects(query(own.href, "select pg_logical_emit_message(false, 'a', repeat('x', 1000))"), /permission denied/)
  await until(
    async () =>
      (
        await query(
          platform.postgres.url(platform.homesDatabase),
          "select evtname from pg_event_trigger where evtenabled = 'A' order by 1",
        )
      ).length === 2,
  )
})
