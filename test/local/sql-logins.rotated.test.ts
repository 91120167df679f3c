// Who can log in to the Postgres of `npm start`, and how: tenants only through the gateway's Postgres proxy, and no user with
// the password of a login that belongs to the services.
import { readFile, stat } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import pg from 'pg'
import t from 'tap'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
import { query } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

interface Tenant {
  tenant_id: string
  path_url: string
  database_url: string
  keys: { secret_key: string }
}

/** Settings that a tenant's code can give its login. Each would break the runtime's next session, or free it from a limit. */
const harmful = {
  search_path: 'pg_catalog',
  role: 'pg_use_reserved_connections',
  statement_timeout: '1',
  default_transaction_read_only: 'on',
  default_transaction_isolation: 'serializable',
  row_security: 'off',
  bytea_output: 'escape',
  standard_conforming_strings: 'off',
  datestyle: 'SQL, DMY',
  work_mem: '1GB',
  transaction_timeout: '1',
  debug_print_plan: 'on',
}

t.test('npm start lets tenants log in through the gateway only', { timeout: 240_000 }, async (t) => {
  const installation = await startInstallation()
  t.teardown(() => removeInstallation(installation))
  const { data } = installation
  const call = async (method: string, path: string, body?: object) => {
    const response = await fetch(`${installation.controlUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${installation.platformKey}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        prefer: 'wait=60',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
    return (await response.json()) as Record<string, unknown>
  }
  const create = async (name: string) =>
    (await call('POST', '/v1/tenants', { name, plan: 'Free', region: 'local' })) as unknown as Tenant
  const [tenant, other] = [await create('acme'), await create('other')]
  const request = (method: string, path: string, body?: object) =>
    fetch(`${tenant.path_url}${path}`, {
      method,
      headers: { authorization: `Bearer ${tenant.keys.secret_key}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })
  const [region] = JSON.parse(await readFile(join(data, 'regions.json'), 'utf8')) as { postgres_url: string }[]
  const superuser = region?.postgres_url ?? ''
  const open = async (url: string) => {
    const client = new pg.Client({ connectionString: url })
    client.on('error', () => undefined)
    await client.connect()
    t.teardown(() => client.end().catch(() => undefined))
    return client
  }
  const urlOf = (user: string, password: string) =>
    Object.assign(new URL(tenant.database_url), { username: user, password }).href

  t.test(
    'Neither server listens on a TCP port, and only the services can enter the directory of the sockets',
    async (t) => {
      const control = superuser.replace(/:5432\/postgres$/, ':5433/postgres')
      t.not(control, superuser)
      for (const url of [superuser, control]) {
        t.same(await query(url, 'show listen_addresses'), [{ listen_addresses: '' }])
        t.same(await query(url, "select 1 from pg_hba_file_rules where type <> 'local' or error is not null"), [])
      }
      const { mode, uid } = await stat(join(data, 'sockets'))
      t.equal(mode & 0o777, 0o700)
      t.equal(uid, (await stat(join(data, 'postgres'))).uid)
      const names = "select datname from pg_database where datname like 'tenantry%' order by 1"
      t.same(await query(superuser, names), [{ datname: 'tenantry_homes_1' }])
      t.same(await query(control, names), [{ datname: 'tenantry_control' }])
    },
  )

  t.test('The port of database_url admits no login of the services', async (t) => {
    t.same(await query(tenant.database_url, 'select session_user::text as name'), [
      { name: `${tenant.tenant_id}_admin` },
    ])
    const { password } = new URL(superuser)
    for (const suffix of ['', '_ddl', '_system', '_owner'])
      await t.rejects(query(urlOf(`${tenant.tenant_id}${suffix}`, password), 'select 1'), { code: '28000' }, suffix)
    await t.rejects(query(urlOf('postgres', password), 'select 1'), { code: '28000' })
  })

  t.test('Sessions of database_url count as connections, and their queries can be cancelled', async (t) => {
    const client = await open(tenant.database_url)
    await until(async () => {
      const usage = (await call('GET', `/v1/tenants/${tenant.tenant_id}/usage`)) as {
        resources?: { realtime_connections: { peak: number } }
      }
      return (usage.resources?.realtime_connections.peak ?? 0) >= 1
    }, 'the session is counted')
    const { processID, secretKey } = client as unknown as { processID: number; secretKey: number }
    const cancelled = t.rejects(client.query('select pg_sleep(60)'), { code: '57014' })
    await until(
      async () => (await query(superuser, "select 1 from pg_stat_activity where wait_event = 'PgSleep'")).length === 1,
    )
    const packet = Buffer.alloc(16)
    for (const [at, value] of [16, 80_877_102, processID, secretKey].entries()) packet.writeInt32BE(value, 4 * at)
    createConnection(Number(new URL(tenant.database_url).port), '127.0.0.1').end(packet)
    await cancelled
    t.same((await client.query('select 1 as one')).rows, [{ one: 1 }])
  })

  t.test(
    "A tenant's code that changes the password and settings of the runtime's logins gains and breaks nothing",
    async (t) => {
      const schema = {
        name: 'notes',
        fields: [{ name: 'id', type: 'number', primary: true }],
        rls_policy: { type: 'service' },
      }
      t.equal((await request('POST', '/rest/v1/schemas', schema)).status, 201)
      const settings = Object.entries(harmful).map(([name, value]) => `set ${name} = ${pg.escapeLiteral(value)}`)
      const changes = ["password 'known'", ...settings].map(
        (change) =>
          `begin execute ${pg.escapeLiteral(`alter role current_user ${change}`)}; exception when insufficient_privilege then null; end;`,
      )
      await query(
        tenant.database_url,
        `create function take_over() returns text language plpgsql as $f$ begin ${changes.join(' ')} return session_user::text; end $f$`,
      )
      t.equal((await request('POST', '/admin/reload-schemas')).status, 200)
      t.equal(await (await request('POST', '/rest/v1/rpc/take_over', {})).json(), tenant.tenant_id)
      const changed = await query(superuser, 'select rolconfig::text as config from pg_roles where rolname = $1', [
        tenant.tenant_id,
      ])
      t.match(changed[0]?.['config'], /bytea_output=escape/, 'the code has changed its login')

      for (const runtime of await installation.runtimes()) process.kill(await installation.pid(runtime), 'SIGKILL')
      await until(
        async () => (await request('POST', '/rest/v1/notes', { id: 1 })).status === 201,
        'a new session writes',
      )
      t.same(await (await request('GET', '/rest/v1/notes')).json(), [{ id: 1 }])
      t.equal((await request('POST', '/admin/reload-schemas')).status, 200, 'schemas can be reloaded')
      const upload = await request('POST', '/storage/v1/object/system/a.txt', { stored: true })
      t.ok(upload.ok, 'files can be written')

      await t.rejects(
        query(urlOf(tenant.tenant_id, 'known'), 'select 1'),
        { code: '28000' },
        'the proxy rejects the login',
      )
      const rules = await query(
        superuser,
        'select user_name::text as users, auth_method as method from pg_hba_file_rules order by rule_number',
      )
      t.match(rules, [{ users: /\/\^t_\[0-9a-f\]\{20\}\(_ddl\)\?\$/, method: 'peer' }, { method: 'scram-sha-256' }])
      const socket = Object.assign(new URL(superuser), { pathname: '/tenantry_homes_1' })
      const direct = query(Object.assign(socket, { username: tenant.tenant_id, password: 'known' }).href, 'select 1')
      // The user of the services needs no password; the password helps no other user, not even root.
      if (process.getuid?.() === 0) await t.rejects(direct, /Peer authentication failed/)
      else await t.resolves(direct)
      t.match(
        await query(superuser, "select pg_has_role($1, 'pg_use_reserved_connections', 'set') as can_set", [
          tenant.tenant_id,
        ]),
        [{ can_set: false }],
        'code in this role cannot become the role with reserved connections',
      )
    },
  )

  t.test('A suspended or deleted tenant has no SQL login, and its sessions end', async (t) => {
    const client = await open(other.database_url)
    const ended = new Promise((resolve) => client.once('end', resolve))
    await call('PATCH', `/v1/tenants/${other.tenant_id}`, { suspended: true, suspend_reason: 'unpaid' })
    await ended
    await t.rejects(query(other.database_url, 'select 1'), { code: '28000', message: /unpaid/ })
    await call('PATCH', `/v1/tenants/${other.tenant_id}`, { suspended: false })
    t.same(await query(other.database_url, 'select 1 as one'), [{ one: 1 }])
    await call('DELETE', `/v1/tenants/${other.tenant_id}`)
    await t.rejects(query(other.database_url, 'select 1'), { code: '28000' })
  })
})
