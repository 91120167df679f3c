// Storage never trusts the contents of a home's tables with the machine's files, the runtime's memory or its time.
import { readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import t from 'tap'
import { parseJson } from '#tenant-runtime/http/parse-json.ts'
import { command } from '#test/functions/support/wasm.ts'
import { startRuntime } from '#test/support/runtime.ts'

t.test('Storage resists a hostile home', { timeout: 120_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  const neighbour = await runtime.addTenant({ name: 'neighbour' })
  /** Runs statements. Without `asTenant`, the role bypasses the rights of the tables. */
  const owner = async (...statements: string[]) => {
    for (const statement of statements) await tenant.rows(statement)
  }
  const asTenant = async (...statements: string[]) => {
    const client = new pg.Client({ connectionString: tenant.home.adminUrl })
    await client.connect()
    try {
      for (const statement of statements) await client.query(statement)
    } finally {
      await client.end()
    }
  }
  await tenant.request('POST', '/storage/v1/object/system/a.txt', {
    as: 'service',
    body: 'mine',
    headers: { 'content-type': 'text/plain' },
  })

  t.test('A blob ID that is a path opens and removes no file', async (t) => {
    const secret = join(tmpdir(), `tenantry-secret-${process.pid}`)
    await writeFile(secret, 'top secret')
    t.teardown(() => rm(secret, { force: true }))
    const up = '../'.repeat(12)
    await owner(
      'drop trigger counted_update on storage_objects',
      'drop trigger rules on storage_objects',
      'alter table storage_objects alter column blob_id type text using blob_id::text',
      `update storage_objects set blob_id = '${up}${secret.slice(1)}', size = 10`,
      'alter table blob_gc alter column blob_id type text using blob_id::text',
      `insert into blob_gc (blob_id) values ('${up}${secret.slice(1)}')`,
    )
    const read = await tenant.request('GET', '/storage/v1/object/system/a.txt', { as: 'service' })
    t.equal(read.status, 404)
    t.notMatch(read.text, /top secret/)
    await tenant.request('DELETE', '/storage/v1/object/system/a.txt', { as: 'service' })
    await runtime.storage.idle()
    t.equal(await readFile(secret, 'utf8'), 'top secret', 'the file is unchanged')
  })

  t.test('A row beyond all limits is an error of its own request only', async (t) => {
    t.equal(
      (
        await tenant.request('POST', '/rest/v1/schemas', {
          as: 'service',
          body: {
            name: 'big',
            fields: [
              { name: 'id', type: 'number', primary: true },
              { name: 'text', type: 'string' },
            ],
            rls_policy: { type: 'service' },
          },
        })
      ).status,
      201,
    )
    t.equal((await tenant.request('POST', '/admin/reload-schemas', { as: 'service', body: {} })).status, 200)
    await owner("insert into big (id, text) select n, repeat('x', 1000000) from generate_series(1, 100) n")
    const response = await tenant.request('GET', '/rest/v1/big?limit=100', { as: 'service' })
    t.equal(response.status, 413, response.text.slice(0, 200))
    t.match(response.json(), { code: 'ANSWER_TOO_LARGE' })
    t.equal(
      (await tenant.request('GET', '/rest/v1/big?limit=10', { as: 'service' })).status,
      200,
      'Postgres grants fewer',
    )
    t.equal((await neighbour.request('GET', '/storage/v1/bucket', { as: 'service' })).status, 200)
  })

  t.test('Limits that a tenant writes into its tables count for at most the maximum', async (t) => {
    const form = new FormData()
    form.set('name', 'greedy')
    form.set('wasm', new Blob([command()]), 'a.wasm')
    const request = new Request(tenant.url, { method: 'POST', body: form })
    const deployed = await tenant.request('POST', '/functions/v1/deploy', {
      as: 'service',
      headers: { 'content-type': request.headers.get('content-type') ?? '' },
      body: Buffer.from(await request.arrayBuffer()),
    })
    t.equal(deployed.status, 201, deployed.text)
    await owner(`update functions set config = '{"timeout": 100000, "max_memory": 1e12, "environment": null}'`)
    t.match((await tenant.request('GET', '/functions/v1/greedy', { as: 'service' })).json(), {
      config: { timeout: 300, max_memory: 536_870_912 },
    })
  })

  t.test('A tenant cannot take advisory locks, which fill a table that all tenants share', async (t) => {
    for (const sql of [
      'select pg_advisory_lock(1)',
      'select pg_try_advisory_xact_lock_shared(1, 2)',
      'select count(pg_advisory_xact_lock(g)) from generate_series(1, 10) g',
    ]) {
      await t.rejects(asTenant(sql), /permission denied/, sql)
    }
  })

  t.test('Names that Postgres reserves are rejected as a schema, not at its reload', async (t) => {
    const schema = (name: string, field: string, owner_field = 'owner') => ({
      name,
      fields: [
        { name: 'id', type: 'uuid', primary: true },
        { name: field, type: 'string' },
      ],
      rls_policy: { type: 'ownership', owner_field },
    })
    for (const body of [
      schema('pg_class', 'a'),
      schema('notes', 'ctid'),
      schema('notes', 'xmin'),
      schema('notes', '__proto__'),
      schema('notes', 'a', 'tenant_id'),
      schema('notes', 'a', 'tableoid'),
    ]) {
      const response = await neighbour.request('POST', '/rest/v1/schemas', { as: 'service', body })
      t.equal(response.status, 400, JSON.stringify(body))
    }
    const record = {
      name: 'new_record',
      fields: [
        { name: 'id', type: 'number', primary: true },
        { name: 'text', type: 'string' },
      ],
      rls_policy: { type: 'service' },
    }
    t.equal((await neighbour.request('POST', '/rest/v1/schemas', { as: 'service', body: record })).status, 201)
    t.equal((await neighbour.request('POST', '/admin/reload-schemas', { as: 'service', body: {} })).status, 200)
    t.equal(
      (await neighbour.request('POST', '/rest/v1/new_record', { as: 'service', body: { id: 1, text: 'a' } })).status,
      201,
    )
    t.equal(
      (await neighbour.request('PATCH', '/rest/v1/new_record?id=eq.1', { as: 'service', body: { text: 'b' } })).status,
      204,
    )
  })

  t.test('Many concurrent forms are not rejected', async (t) => {
    const small = await runtime.addTenant({ name: 'small', limits: { file_bytes: 100_000_000 } })
    const storage = small.client('service').storage.from('system')
    const responses = await Promise.all(
      Array.from({ length: 40 }, (_, n) => storage.upload(`many/${n}.bin`, new Blob([new Uint8Array(100_000)]))),
    )
    t.same(
      responses.filter(({ error }) => error !== null).map(({ error }) => error?.message),
      [],
    )
  })
})

t.test('Storage limits JSON of untrusted users', async (t) => {
  t.same(
    parseJson('{"a":[1,{"b":"__proto__"}],"c":"\\"__proto__\\": 1"}'),
    { a: [1, { b: '__proto__' }], c: '"__proto__": 1' },
    'a value is not a key',
  )
  const bad = [
    '{"__proto__":1}',
    '{"a":{"__proto__" : 1}}',
    '{"\\u005f_proto__":1}',
    '{"\\u005f\\u005f\\u0070\\u0072\\u006f\\u0074\\u006f\\u005f\\u005f"\n:1}',
    '['.repeat(65),
    '['.repeat(100_000),
    `[${'1,'.repeat(600_000)}1]`,
    '',
    '{',
    '"',
    '{"a"',
  ]
  for (const text of bad) t.throws(() => parseJson(text), SyntaxError, text.slice(0, 40))
  t.same(
    parseJson(`${'['.repeat(64)}${']'.repeat(64)}`),
    JSON.parse(`${'['.repeat(64)}${']'.repeat(64)}`),
    'at the maximum depth',
  )
})
