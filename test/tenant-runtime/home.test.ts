// A tenant's home in Postgres: no rows without a context, none with another tenant's, and no way around the policies.
import pg from 'pg'
import t from 'tap'
import { createHome } from '#test/support/home.ts'
import { query, startPostgres } from '#test/support/postgres.ts'

/** Records of blobs and migrations: rows without a tenant, in a schema of its own. */
const withoutTenant = [
  'blob_gc',
  'blob_intents',
  'home_migrations',
  'home_structure',
  'storage_bucket_counters',
  'storage_usage',
  'usage_hours',
]

t.test('A home', async (t) => {
  const postgres = await startPostgres()
  t.teardown(() => postgres.stop())
  const home = await createHome(postgres)
  const superuser = postgres.url('homes')
  const tables = await query(
    superuser,
    `select relname, relrowsecurity, relforcerowsecurity, pg_get_userbyid(relowner) as owner,
    exists (select from pg_attribute where attrelid = c.oid and attname = 'tenant_id') as has_tenant
    from pg_class c where relnamespace = $1::regnamespace and relkind = 'r' order by relname`,
    [home.tenantId],
  )

  t.test('Every table with rows of a tenant has forced row-level security', async (t) => {
    t.same(
      tables.filter((table) => table['has_tenant'] !== true).map((table) => table['relname']),
      withoutTenant,
    )
    for (const table of tables) {
      t.equal(table['owner'], `${home.tenantId}_system`, `${String(table['relname'])} belongs to the system role`)
      if (table['has_tenant'] !== true) continue
      t.ok(table['relrowsecurity'] === true && table['relforcerowsecurity'] === true, String(table['relname']))
    }
    const policies = await query(
      superuser,
      'select tablename, qual, with_check from pg_policies where schemaname = $1',
      [home.tenantId],
    )
    t.ok(policies.length >= 10)
    for (const policy of policies)
      t.match(
        `${String(policy['qual'])} ${String(policy['with_check'])}`,
        /tenant_id = .*app\.tenant_id/,
        `a policy of ${String(policy['tablename'])} checks the tenant`,
      )
  })

  t.test('No role of the home bypasses the policies, and no function grants rights', async (t) => {
    const roles = await query(
      superuser,
      'select rolname from pg_roles where rolname like $1 and (rolsuper or rolbypassrls or rolcreaterole or rolcreatedb or rolreplication)',
      [`${home.tenantId}%`],
    )
    t.same(roles, [])
    t.same(
      await query(superuser, 'select proname from pg_proc where pronamespace = $1::regnamespace and prosecdef', [
        home.tenantId,
      ]),
      [],
    )
  })

  t.test('The runtime sees no rows without a context or with a wrong one', async (t) => {
    await query(home.adminUrl, "insert into schemas (name, fields, rls_policy) values ('seen', '[]', '{}')")
    await query(home.adminUrl, "insert into event_log (type, payload) values ('test', '{}')")
    const client = new pg.Client({ connectionString: home.url })
    await client.connect()
    t.teardown(() => client.end())
    const contexts: Record<string, [tenant: string, role: string, user: string] | undefined> = {
      'no context': undefined,
      'an empty one': ['', '', ''],
      "another tenant's": ['t_ffffffffffffffffffff', 'service_role', 'ada'],
      'its own, anonymous': [home.tenantId, 'anon', ''],
    }
    for (const [label, context] of Object.entries(contexts)) {
      await client.query('begin')
      if (context !== undefined) {
        await client.query(
          "select set_config('app.tenant_id', $1, true), set_config('app.role', $2, true), set_config('app.user_id', $3, true)",
          context,
        )
      }
      for (const { relname, has_tenant } of tables) {
        if (has_tenant !== true || (relname === 'applied_schemas' && label.startsWith('its own'))) continue
        t.same((await client.query(`select * from "${String(relname)}"`)).rows, [], `${String(relname)}: ${label}`)
      }
      await client.query('rollback')
    }
    await client.query('begin')
    await client.query("select set_config('app.tenant_id', $1, true), set_config('app.role', 'service_role', true)", [
      home.tenantId,
    ])
    t.equal((await client.query('select * from schemas')).rowCount, 1, 'the service sees it')
    await client.query('commit')
    t.equal((await client.query('select * from schemas')).rowCount, 0, 'and the context ends with its transaction')
  })
})
