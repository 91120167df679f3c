// Two tenants of one installation: neither can read, write or list data of the other, by HTTP, SQL, signed URLs or functions.
import { createHmac, randomUUID } from 'node:crypto'
import pg from 'pg'
import t from 'tap'
import { compileFunction } from '#examples/functions/compile.ts'
import { startPlatform, type Platform } from '#test/support/platform.ts'
import { query } from '#test/support/postgres.ts'

interface Tenant {
  id: string
  name: string
  databaseUrl: string
  secretKey: string
  publishableKey: string
  jwtSecret: string
  /** Text that all data of this tenant contains. */
  canary: string
}

function token(secret: string, claims: Record<string, unknown>): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode({ exp: Math.floor(Date.now() / 1000) + 3600, ...claims })}`
  return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
}

async function createTenant(platform: Platform, name: string, wasm: Uint8Array<ArrayBuffer>): Promise<Tenant> {
  const { status, body } = await platform.call(
    'POST',
    '/v1/tenants',
    { name, plan: 'Free', region: 'local' },
    { prefer: 'wait=30' },
  )
  if (status !== 201) throw new Error(JSON.stringify(body))
  const keys = body['keys'] as { secret_key: string; publishable_key: string; jwt_secret: string }
  const tenant: Tenant = {
    id: String(body['tenant_id']),
    name,
    databaseUrl: String(body['database_url']),
    secretKey: keys.secret_key,
    publishableKey: keys.publishable_key,
    jwtSecret: keys.jwt_secret,
    canary: `canary-${randomUUID()}`,
  }
  const call = async (method: string, path: string, body: string, type = 'application/json') => {
    const response = await platform.tenantCall(name, method, path, { key: tenant.secretKey, body, type })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  }
  await call('POST', '/storage/v1/bucket', JSON.stringify({ name: 'papers' }))
  await call('POST', '/storage/v1/object/papers/letter.txt', tenant.canary, 'text/plain')
  const fields = [
    { name: 'id', type: 'uuid', primary: true },
    { name: 'owner_id', type: 'string' },
    { name: 'text', type: 'string', required: true },
  ]
  await call(
    'POST',
    '/rest/v1/schemas',
    JSON.stringify({ name: 'notes', fields, rls_policy: { type: 'ownership', owner_field: 'owner_id' } }),
  )
  await call('POST', '/admin/reload-schemas', '{}')
  await call('POST', '/rest/v1/notes', JSON.stringify({ id: randomUUID(), owner_id: 'ada', text: tenant.canary }))
  const form = new FormData()
  form.set('name', 'greet')
  form.set('config', JSON.stringify({ environment: { SECRET: tenant.canary } }))
  form.set('wasm', new Blob([wasm]), 'greet.wasm')
  const deployed = await fetch(`${platform.gatewayUrl}/t/${name}/functions/v1/deploy`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tenant.secretKey}` },
    body: form,
  })
  if (deployed.status !== 201) throw new Error(`${await deployed.text()}\n${platform.output()}`)
  return tenant
}

t.test('Two tenants of one installation are isolated', { timeout: 180_000 }, async (t) => {
  const platform = await startPlatform()
  t.teardown(() => platform.stop())
  await platform.startControlPlane()
  const wasm = await compileFunction('greet')
  const ada = await createTenant(platform, 'ada-corp', wasm)
  const eve = await createTenant(platform, 'eve-corp', wasm)

  t.test("A tenant's credentials give no access to another tenant by HTTP", async (t) => {
    const credentials = {
      'secret key': eve.secretKey,
      'service token': token(eve.jwtSecret, { role: 'service_role', sub: 'eve' }),
      'user token that names the tenant': token(eve.jwtSecret, {
        sub: 'ada',
        role: 'authenticated',
        aud: ada.id,
        iss: ada.name,
      }),
      'publishable key': eve.publishableKey,
    }
    const calls: [string, string, string?][] = [
      ['GET', '/storage/v1/bucket'],
      ['GET', '/storage/v1/object/papers/letter.txt'],
      ['DELETE', '/storage/v1/object/papers/letter.txt'],
      ['POST', '/storage/v1/object/papers/letter.txt', 'overwritten'],
      ['POST', '/storage/v1/object/list/papers', '{"prefix":""}'],
      ['POST', '/storage/v1/object/sign/papers/letter.txt?expires_in=60', '{}'],
      ['GET', '/rest/v1/notes'],
      ['GET', '/rest/v1/schemas'],
      ['GET', '/rest/v1/storage_objects'],
      ['GET', '/rest/v1/function_invocations'],
      ['POST', '/rest/v1/notes', '{"text":"intruder"}'],
      ['PATCH', '/rest/v1/notes?text=not.is.null', '{"text":"changed"}'],
      ['DELETE', '/rest/v1/notes?text=not.is.null'],
      ['POST', '/admin/reload-schemas', '{}'],
      ['GET', '/functions/v1'],
      ['GET', '/functions/v1/greet'],
      ['DELETE', '/functions/v1/greet'],
      ['POST', '/functions/v1/invoke/greet', '{"name":"x"}'],
    ]
    for (const [label, key] of Object.entries(credentials)) {
      for (const [method, path, body] of calls) {
        const response = await platform.tenantCall(ada.name, method, path, {
          key,
          type: 'application/json',
          ...(body === undefined ? {} : { body }),
        })
        const text = await response.text()
        // A foreign opaque key counts as no key: requests that anonymous callers may send succeed with an empty result.
        const isNothing = response.status >= 400 || text === '[]'
        t.ok(
          isNothing && !text.includes(ada.canary),
          `${label}: ${method} ${path} → ${response.status} ${text.slice(0, 80)}`,
        )
      }
    }
  })

  t.test('Internal headers and crafted paths give no access to another tenant', async (t) => {
    const attempts: [string, Record<string, string>][] = [
      [
        '/t/eve-corp/storage/v1/object/papers/letter.txt',
        { 'x-tenantry-tenant': ada.id, 'x-tenant-id': ada.id, host: 'ada-corp.localhost' },
      ],
      ['/t/eve-corp/../ada-corp/storage/v1/object/papers/letter.txt', {}],
      ['/t/eve-corp/%2e%2e/ada-corp/storage/v1/object/papers/letter.txt', {}],
      ['/t/eve-corp/storage/v1/object/papers/..%2f..%2f' + ada.id + '%2fletter.txt', {}],
      [`/t/eve-corp/internal/v1/tenants/${ada.id}/usage`, {}],
      [`/t/eve-corp/internal/v1/tenants/${ada.id}/health`, {}],
    ]
    for (const [path, headers] of attempts) {
      const response = await fetch(`${platform.gatewayUrl}${path}`, {
        headers: { authorization: `Bearer ${eve.secretKey}`, ...headers },
      })
      const text = await response.text()
      t.notOk(text.includes(ada.canary), `${path} → ${response.status}`)
      if (path.includes('internal')) t.ok(response.status >= 400, `${path} → ${response.status}`)
    }
  })

  t.test('A signed URL of one tenant is rejected for the other tenant', async (t) => {
    const signed = await platform.tenantCall(
      ada.name,
      'POST',
      '/storage/v1/object/sign/papers/letter.txt?expires_in=60',
      { key: ada.secretKey, body: '{}', type: 'application/json' },
    )
    const { url } = (await signed.json()) as { url: string }
    const path = url.replace(/^.*?\/storage\//, '/storage/')
    t.equal(
      await (await platform.tenantCall(ada.name, 'GET', path)).text(),
      ada.canary,
      'the URL works for its own tenant',
    )
    const elsewhere = await platform.tenantCall(eve.name, 'GET', path)
    t.ok(elsewhere.status >= 400, `for the other tenant: ${elsewhere.status}`)
  })

  t.test('SQL with any role and any setting gives no access to another tenant', async (t) => {
    const connected = async () => {
      const client = new pg.Client({ connectionString: eve.databaseUrl })
      client.on('error', () => undefined)
      await client.connect()
      return client
    }
    let client = await connected()
    t.teardown(() => client.end())
    const rejected = async (sql: string, label = sql) => {
      const outcome = await client.query(sql).then(
        (result) => JSON.stringify(Array.isArray(result) ? [] : result.rows).slice(0, 100),
        (error: unknown) => error,
      )
      t.ok(
        outcome instanceof pg.DatabaseError,
        `${label}: ${outcome instanceof Error ? outcome.message : String(outcome)}`,
      )
    }
    t.same(
      (await client.query('select count(*)::int as n from notes')).rows,
      [{ n: 1 }],
      'the tenant reads its own rows',
    )

    const tables = (
      await query(
        platform.postgres.url(platform.homesDatabase),
        `select relname from pg_class where relnamespace = '${ada.id}'::regnamespace and relkind in ('r', 'S')`,
      )
    ).map((row) => String(row['relname']))
    t.ok(tables.length > 8)
    const readsNothing = async (label: string) => {
      const readable: string[] = []
      for (const table of tables) {
        for (const sql of [`select * from "${ada.id}"."${table}"`, `delete from "${ada.id}"."${table}"`])
          await client.query(sql).then(
            () => readable.push(sql),
            () => undefined,
          )
      }
      t.same(readable, [], label)
    }
    await readsNothing('with the initial role')

    const roles = (await client.query<{ rolname: string }>('select rolname from pg_roles')).rows.map(
      (row) => row.rolname,
    )
    t.ok(roles.includes(ada.id) && roles.includes('postgres'))
    const taken: string[] = []
    for (const role of roles) {
      for (const sql of [`set role "${role}"`, `set session authorization "${role}"`]) {
        await client.query(sql).then(
          () => taken.push(role),
          () => undefined,
        )
        await client.query('reset role')
      }
    }
    t.same([...new Set(taken)].sort(), [`${eve.id}_admin`, `${eve.id}_owner`], 'the tenant can only take its own roles')

    const settings = (
      await client.query<{ name: string; enumvals: string[] | null; vartype: string }>(
        'select name, enumvals, vartype from pg_settings',
      )
    ).rows
    settings.push(
      ...['app.tenant_id', 'app.role', 'app.user_id', 'request.jwt.claims'].map((name) => ({
        name,
        enumvals: null,
        vartype: 'string',
      })),
    )
    let changed = 0
    for (const { name, enumvals, vartype } of settings) {
      const values =
        enumvals ??
        (vartype === 'bool'
          ? ['on', 'off']
          : vartype === 'string'
            ? [ada.id, 'service_role', `"${ada.id}"`]
            : ['0', '1'])
      for (const value of values) {
        // One message sets a value and tries it, because some settings end an idle session.
        const set = `set ${name} = ${pg.escapeLiteral(value)}`
        if (
          await client.query(`${set}; reset ${name}`).then(
            () => true,
            () => false,
          )
        )
          changed++
        await client.query(`${set}; select * from "${ada.id}".notes`).then(
          () => t.fail(`${name} = ${value} opens the other tenant's table`),
          () => undefined,
        )
        // `exit_on_error` ends the session.
        if (name === 'exit_on_error') client = await connected()
      }
    }
    t.ok(changed > 100, `${settings.length} settings, ${changed} values accepted, none gives access`)

    for (const sql of [
      `grant "${ada.id}_owner" to "${eve.id}_admin"`,
      `alter role "${ada.id}" password 'x'`,
      `alter role "${eve.id}_admin" superuser`,
      'create role intruder',
      'create database intruder',
      `create schema intruder`,
      `create table "${ada.id}".intruder (a int)`,
      'create table public.intruder (a int)',
      'create temporary table intruder (a int)',
      `drop schema "${ada.id}" cascade`,
      `alter table "${ada.id}".notes disable row level security`,
      "select pg_read_file('/etc/passwd')",
      "copy notes to program 'cat'",
      "copy notes from '/etc/passwd'",
      'select lo_create(0)',
      "select lo_from_bytea(0, 'x')",
      'create extension dblink',
      'create language plpython3u',
      `select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and usename is not null`,
      'select * from pg_authid',
      'select * from pg_shadow',
      'alter system set port = 1',
      'checkpoint',
    ])
      await rejected(sql)
    const { rows } = await client.query<{ query: string }>(
      "select query from pg_stat_activity where usename like 't\\_%' and usename not like $1",
      [`${eve.id}%`],
    )
    t.same(
      rows.filter(({ query }) => query !== '<insufficient privilege>'),
      [],
      "the other tenant's statements are hidden",
    )

    const other = new URL(eve.databaseUrl)
    for (const database of ['postgres', 'template1']) {
      other.pathname = `/${database}`
      const foreignClient = new pg.Client({ connectionString: other.href })
      foreignClient.on('error', () => undefined)
      await t.rejects(foreignClient.connect(), /permission denied/, `no access to ${database}`)
      await foreignClient.end().catch(() => undefined)
    }
  })

  t.test("A tenant's functions do not return another tenant's data", async (t) => {
    const response = await platform.tenantCall(eve.name, 'POST', '/functions/v1/invoke/greet', {
      key: eve.secretKey,
      body: '{"name":"Eve"}',
      type: 'application/json',
    })
    const text = await response.text()
    t.equal(response.status, 200, text)
    t.notMatch(text, ada.canary)
    const tooLarge = await platform.tenantCall(eve.name, 'POST', '/functions/v1/invoke/greet', {
      key: eve.secretKey,
      body: 'x'.repeat(6 * 1024 * 1024 + 1),
      type: 'text/plain',
    })
    t.equal(tooLarge.status, 413)
    t.match(await tooLarge.json(), { code: 'BODY_TOO_LARGE' })
  })

  t.test('All data of the attacked tenant is unchanged', async (t) => {
    const read = async (path: string) =>
      (await platform.tenantCall(ada.name, 'GET', path, { key: ada.secretKey })).text()
    t.equal(await read('/storage/v1/object/papers/letter.txt'), ada.canary)
    t.match(JSON.parse(await read('/rest/v1/notes')), [{ text: ada.canary }])
    t.equal((JSON.parse(await read('/rest/v1/notes')) as unknown[]).length, 1)
    t.match(JSON.parse(await read('/functions/v1')), [{ name: 'greet', enabled: true }])
    t.equal((JSON.parse(await read('/rest/v1/function_invocations')) as unknown[]).length, 0)
  })
})
