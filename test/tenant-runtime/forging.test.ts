// No key, user or function of a tenant can change its home's recorded usage, except by using it.
import { HomeCounters } from '@tenantry/contract'
import t, { type Test } from 'tap'
import { Value } from 'typebox/value'
import { guardStatement } from '#tenant-runtime/functions/host/guarded-statement.ts'
import { callHost, compileHostCaller, type HostResult } from '#test/functions/support/host-caller.ts'
import { deployFunction } from '#test/functions/support/deployed.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'

const counterTables = [
  'usage_hours',
  'storage_usage',
  'storage_bucket_counters',
  'function_invocations',
  'blob_intents',
  'blob_gc',
]

t.test('Forging of usage', { timeout: 60_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  await tenant.request('POST', '/storage/v1/bucket', { as: 'service', body: { name: 'files' } })
  await tenant.request('PUT', '/storage/v1/object/files/a.txt', {
    as: 'service',
    body: Buffer.alloc(1_000, 'a'),
    headers: { 'content-type': 'text/plain' },
  })
  await tenant.rows("insert into usage_hours values ('2026-05-01T00:00:00Z', 'function_invocations', 7)")
  const state = async () => [
    await tenant.rows('select * from usage_hours'),
    await tenant.rows('select books, books_began, counted_at, file_byte_us, file_bytes, file_count from storage_usage'),
    await tenant.rows('select * from function_invocations'),
  ]

  t.test('REST neither reads nor writes the tables of the counters, with any key', async (t) => {
    const before = await state()
    for (const table of counterTables) {
      for (const as of ['service', 'ada', undefined]) {
        for (const [method, path, body] of [
          ['POST', table, { value: 0 }],
          ['PATCH', `${table}?value=gte.0`, { value: 0 }],
          ['DELETE', `${table}?value=gte.0`, undefined],
          ['PUT', `${table}/1`, { value: 0 }],
        ] as const) {
          const response = await tenant.request(method, `/rest/v1/${path}`, {
            as,
            ...(body === undefined ? {} : { body }),
          })
          t.ok(
            response.status >= 400 && response.status < 500,
            `${method} ${table} as ${as ?? 'anonymous'}: ${response.status}`,
          )
        }
        if (table !== 'function_invocations')
          t.ok(
            (await tenant.request('GET', `/rest/v1/${table}`, { as })).status >= 400,
            `reading ${table} as ${as ?? 'anonymous'}`,
          )
      }
    }
    t.same(await state(), before)
  })

  t.test('A schema with the name of such a table is rejected, and a reload changes none', async (t) => {
    const before = await state()
    for (const name of counterTables) {
      const fields = [{ name: 'id', type: 'uuid', primary: true }]
      const response = await tenant.request('POST', '/rest/v1/schemas', {
        as: 'service',
        body: { name, fields, rls_policy: { type: 'public_read' } },
      })
      t.ok(response.status >= 400 && response.status < 500, name)
    }
    await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })
    t.same(await state(), before)
  })

  t.test("A function with its caller's role cannot name such a table", async (t) => {
    for (const table of counterTables) {
      // A function with the service role may read them, but not change them.
      t.doesNotThrow(() => guardStatement(`insert into notes select count(*) from ${table}`, false))
      for (const sql of [
        `update ${table} set value = 0`,
        `delete from "${table}"`,
        `insert into ${table.toUpperCase()} values (1)`,
        `with x as (delete from ${table} returning 1) select * from x`,
      ]) {
        for (const asCaller of [true, false])
          t.throws(() => guardStatement(sql, asCaller), { code: 'STATEMENT_REJECTED' }, sql)
      }
    }
  })

  t.test('Sizes that an upload or a change states are ignored: the received bytes count', async (t) => {
    const usage = async () =>
      (await tenant.rows('select books, books_began, file_byte_us, file_bytes from storage_usage'))[0]
    const before = await usage()
    for (const [method, path] of [
      ['PATCH', '/storage/v1/object/files/a.txt'],
      ['POST', '/storage/v1/object/files/b.txt'],
      ['PATCH', '/rest/v1/storage_objects?size=gte.0'],
    ] as const) {
      await tenant.request(method, path, {
        as: 'service',
        body: { size: 0, file_bytes: 0 },
        headers: { 'x-upsert': 'true' },
      })
    }
    const after = await usage()
    t.ok(Number(after?.['file_byte_us']) >= Number(before?.['file_byte_us']))
    t.match(after, { books: before?.['books'], books_began: before?.['books_began'] })
    t.ok(Number(after?.['file_bytes']) >= 1_000)
    t.match(await tenant.rows('select sum(size)::text as bytes from storage_objects'), [
      { bytes: String(after?.['file_bytes']) },
    ])
  })
})

t.test('Functions cannot forge usage', { timeout: 120_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  const bystander = await runtime.addTenant()
  const notes = {
    name: 'notes',
    fields: [
      { name: 'id', type: 'uuid', primary: true },
      { name: 'text', type: 'string' },
      { name: 'file_bytes', type: 'number' },
    ],
    rls_policy: { type: 'service' },
  }
  t.equal((await tenant.request('POST', '/rest/v1/schemas', { as: 'service', body: notes })).status, 201)
  t.equal((await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })).status, 200)
  t.equal(
    (await tenant.request('POST', '/storage/v1/bucket', { as: 'service', body: { name: 'files', policy: 'public' } }))
      .status,
    201,
  )
  t.ok(
    (
      await tenant.request('PUT', '/storage/v1/object/files/a.txt', {
        as: 'service',
        body: Buffer.alloc(1_000, 'a'),
        headers: { 'content-type': 'text/plain' },
      })
    ).status < 300,
  )
  const wasm = await compileHostCaller()
  await deployFunction(tenant, { name: 'plain', wasm })
  await deployFunction(tenant, { name: 'privileged', wasm, config: { role: 'service_role' } })

  let calls = 0
  let minByteSeconds = 0n
  /** Calls a function. Afterwards the counters must include each call, and each byte for as long as it was stored. */
  const attempt = async (
    t: Test,
    fn: 'plain' | 'privileged',
    what: string,
    ...parts: string[]
  ): Promise<HostResult> => {
    const requested = await callHost(tenant, fn, 'ada', what, ...parts)
    calls++
    const read = await readCounters(tenant)
    const byteSeconds = read.hours.reduce((sum, hour) => sum + BigInt(hour.file_byte_seconds), 0n)
    const label = `${fn}: ${parts.join(' ')}`
    t.equal(
      read.hours.reduce((sum, hour) => sum + Number(hour.function_invocations), 0),
      calls,
      label,
    )
    t.equal(read.file_bytes, 1_000, label)
    t.ok(byteSeconds >= minByteSeconds, label)
    minByteSeconds = byteSeconds
    return requested
  }
  const spellings = (table: string) => [
    `update ${table} set tenant_id = tenant_id`,
    `update only ${table} as x set tenant_id = '1'`,
    `update only ("${tenant.id}" . ${table.toUpperCase()}) set tenant_id = '1'`,
    `update /* */ "${table}" -- x\n set tenant_id = '1'`,
    `update homes."${tenant.id}"."${table}" set tenant_id = '1'`,
    `delete from ${table}`,
    `delete from only ( ${table} ) where true`,
    `insert into "${table}" default values`,
    `insert into ${table} select 1 on conflict do nothing`,
    `merge into ${table} as x using notes n on true when matched then delete`,
    `with x as (update ${table} set tenant_id = '1' returning 1) select count(*) from x`,
    `with x as (select 1), y as (delete from ${table} returning 1) insert into notes (text) select 'x' from y`,
  ]

  t.test('No statement of a function changes a table of the counters, in any spelling and with any role', async (t) => {
    for (const [n, table] of counterTables.entries()) {
      const all = spellings(table)
      for (const sql of all) t.equal((await attempt(t, 'privileged', 'query', sql)).code, 'STATEMENT_REJECTED', sql)
      for (const sql of all.slice(2 * n, 2 * n + 2))
        t.equal((await attempt(t, 'plain', 'query', sql)).code, 'STATEMENT_REJECTED', sql)
    }
    t.match(
      (await attempt(t, 'privileged', 'query', 'update storage_usage set file_bytes = 0')).text,
      /It changes \\"storage_usage\\", where the runtime counts what the tenant stores and uses/,
    )
  })

  t.test('Other kinds of statements and changes of the session do not change the counters either', async (t) => {
    const usage = `update storage_usage set file_bytes = 0`
    for (const sql of [
      `do $$ begin ${usage}; end $$`,
      `copy storage_usage from stdin`,
      `copy (${usage} returning 1) to stdout`,
      `prepare a as ${usage}`,
      'execute a',
      'listen a',
      'truncate function_invocations',
      'lock storage_usage',
      'alter table storage_usage disable trigger counted',
      'drop trigger gone on function_invocations',
      'create view mine as select * from storage_usage',
      'create rule r as on update to storage_usage do instead nothing',
      'create function f() returns int language sql as $$ select 1 $$',
      'create trigger x before update on storage_usage for each row execute function f()',
      'set role postgres',
      'set search_path = pg_temp',
      'set session_replication_role = replica',
      `explain analyze ${usage}`,
      `select 1; ${usage}`,
      `/**/;${usage}`,
      `values (1); ${usage}`,
      `(${usage})`,
      'refresh materialized view a',
      'grant all on storage_usage to public',
      'call f()',
      'vacuum storage_usage',
    ])
      t.equal((await attempt(t, 'privileged', 'query', sql)).code, 'STATEMENT_REJECTED', sql)
    for (const sql of [
      `select query_to_xml('${usage} returning 1', true, true, '')`,
      `select ts_stat('${usage} returning ''a''::tsvector')`,
      `select lo_from_bytea(0, 'x')`,
      `select lo_import('/etc/passwd')`,
      `select pg_read_file('PG_VERSION')`,
      "select set_config('session_replication_role', 'replica', false)",
      "select set_config('role', 'postgres', false)",
      `select set_config('role', '${tenant.id}_owner', false)`,
      `select set_config('session_authorization', '${tenant.id}_ddl', false)`,
      `select * from dblink('', '${usage}')`,
      'select pg_stat_reset()',
      'select pg_switch_wal()',
      'select * from usage_counters',
      'select * from tenants',
      `select * from "${bystander.id}".storage_usage`,
      `insert into "${bystander.id}".notes values (1)`,
      'select pg_advisory_lock(1)',
      'delete from event_log',
      "insert into applied_schemas (name, definition) values ('usage_hours', '{}')",
    ])
      t.equal((await attempt(t, 'privileged', 'query', sql)).ok, false, sql)
    // Allowed statements, which do not help to forge usage.
    for (const sql of [
      `select set_config('search_path', 'pg_catalog', false)`,
      `select set_config('app.tenant_id', '${bystander.id}', false)`,
      "select set_config('app.role', 'anon', false)",
      "select set_config('row_security', 'off', false)",
      "select set_config('TimeZone', 'Pacific/Kiritimati', false)",
      "select set_config('statement_timeout', '1', false)",
      "select pg_notify('a', 'b')",
      "select pg_logical_emit_message(true, 'a', 'b')",
      'select * from storage_usage for update',
      'select * from usage_hours',
      `insert into notes (text) select 'storage_usage' from storage_usage`,
      `update notes set text = 'x' where exists (select from storage_usage for update)`,
      `insert into notes (text, file_bytes) values ('a', 0) on conflict do nothing`,
      'select * from storage_objects o join storage_buckets b on b.id = o.bucket_id for update of o',
    ])
      t.equal((await attempt(t, 'privileged', 'query', sql)).text.includes('STATEMENT_REJECTED'), false, sql)
  })

  t.test("Another tenant's counters are unchanged", async (t) => {
    t.match(await bystander.rows('select file_bytes::int, file_count::int from storage_usage'), [
      { file_bytes: 0, file_count: 0 },
    ])
    t.same(
      (await readCounters(bystander)).hours.map((hour) => hour.function_invocations),
      ['0'],
    )
  })

  t.test('Files that functions write and delete count like those of any caller', async (t) => {
    const put = await callHost(tenant, 'privileged', 'ada', 'put', 'files/b.txt', 'text/plain', 'b'.repeat(500))
    calls++
    t.ok(put.ok, put.text)
    t.equal((await readCounters(tenant)).file_bytes, 1_500)
    t.ok((await callHost(tenant, 'privileged', 'ada', 'remove', 'files/b.txt')).ok)
    calls++
    // The bucket and its files may be deleted, and then count no longer.
    await attempt(t, 'privileged', 'query', 'select count(*) from notes')
    t.ok((await callHost(tenant, 'privileged', 'ada', 'query', "delete from storage_buckets where name = 'files'")).ok)
    calls++
    const after = await readCounters(tenant)
    t.equal(after.file_bytes, 0)
    t.equal(
      after.hours.reduce((sum, hour) => sum + Number(hour.function_invocations), 0),
      calls,
    )
    t.ok(after.hours.reduce((sum, hour) => sum + BigInt(hour.file_byte_seconds), 0n) >= minByteSeconds)
  })

  t.test(
    'The service key calls no routine of the counters, embeds none of their tables and enters no other schema',
    async (t) => {
      const before = await readCounters(tenant)
      const routines = await tenant.rows(
        'select distinct proname from pg_proc where pronamespace = $1::regnamespace order by 1',
        [tenant.id],
      )
      t.ok(routines.length > 5)
      for (const name of [
        ...routines.map(({ proname }) => String(proname)),
        'set_config',
        'pg_terminate_backend',
        'lo_create',
        'query_to_xml',
      ]) {
        const response = await tenant.request('POST', `/rest/v1/rpc/${name}`, { as: 'service', body: {} })
        t.equal(response.status, 404, `${name}: ${response.text}`)
      }
      for (const path of [
        'notes?select=*,storage_usage(*)',
        'notes?select=*,usage_hours(*)',
        'functions?select=*,function_invocations(count)&function_invocations.duration_ms=eq.0',
        'storage_objects?select=*,blob_gc(*)',
      ]) {
        const response = await tenant.request('GET', `/rest/v1/${path}`, { as: 'service' })
        t.ok(response.status < 500 && !/file_byte_us|reserved/.test(response.text), path)
      }
      for (const headers of [
        { 'content-profile': bystander.id },
        { 'content-profile': 'pg_catalog' },
        { 'accept-profile': 'information_schema', 'content-profile': 'information_schema' },
      ]) {
        const response = await tenant.request('PATCH', '/rest/v1/storage_usage?file_bytes=gte.0', {
          as: 'service',
          body: { file_bytes: 0 },
          headers,
        })
        t.ok(response.status >= 400 && response.status < 500)
      }
      for (const method of ['POST', 'PUT', 'PATCH', 'DELETE'])
        t.ok(
          [404, 405].includes((await tenant.request(method, '/usage/v1/', { as: 'service', body: {} })).status),
          method,
        )
      const after = await readCounters(tenant)
      t.same(
        after.hours.map((hour) => hour.function_invocations),
        before.hours.map((hour) => hour.function_invocations),
      )
      t.equal(after.file_bytes, before.file_bytes)
    },
  )
})

async function readCounters(tenant: TestTenant): Promise<HomeCounters> {
  const response = await tenant.request('GET', `/internal/v1/tenants/${tenant.id}/books?hours=3`)
  if (response.status !== 200) throw new Error(response.text)
  return Value.Parse(HomeCounters, response.json())
}
