// Host calls to the database: which rows a deployed function reaches, whether its statements change the session, and how
// they fail.
import t from 'tap'
import { reservedCollections, systemCollections } from '#tenant-runtime/rest/registry/system-collections.ts'
import { callHost } from './support/host-caller.ts'
import { canary, notes, setUp } from './support/notes-tenant.ts'

t.test('db_query', { timeout: 240_000 }, async (t) => {
  const { tenant } = await setUp(t)
  const query = (as: string, sql: string, parameters: unknown[] = [], fn = 'host-caller') =>
    callHost(tenant, fn, as, 'query', sql, JSON.stringify(parameters))

  t.test("A function with the role of its caller reads only the caller's rows", async (t) => {
    t.same((await query('ada', 'select owner_id, text from notes')).json(), {
      rows: [{ owner_id: 'ada', text: 'the lamp is lit' }],
      count: 1,
    })
    t.same((await query('ben', 'select owner_id, text from notes')).json(), {
      rows: [{ owner_id: 'ben', text: 'the window is shut' }],
      count: 1,
    })
    t.same((await query('ada', 'select * from notes where owner_id = $1', ['ben'])).json(), { rows: [], count: 0 })
    t.same((await query('ada', 'with n as (select * from notes) select count(*) as n from n')).json(), {
      rows: [{ n: 1 }],
      count: 1,
    })
    t.same(
      (await query('ada', 'select count(*) as n from functions')).json(),
      { rows: [{ n: 0 }], count: 1 },
      'system collections keep their policies',
    )
    t.same(
      (await query('service', 'select count(*) as n from notes')).json(),
      { rows: [{ n: 2 }], count: 1 },
      'a function that the service calls',
    )
  })

  t.test("A function with the role of its caller changes only the caller's rows", async (t) => {
    t.same((await query('ada', "update notes set text = 'mine' where owner_id = 'ben'")).json(), { rows: [], count: 0 })
    t.same((await query('ada', "delete from notes where owner_id = 'ben'")).json(), { rows: [], count: 0 })
    const foreign = await query('ada', "insert into notes (owner_id, text) values ('ben', 'forged')")
    t.same([foreign.ok, foreign.code], [false, 'ROW_DENIED'])
    t.same(
      (
        await query('ada', "insert into notes (owner_id, text) values ('ada', $1), ('ada', $2) -- two", ['a', 'b'])
      ).json(),
      { rows: [], count: 2 },
    )
    t.same(
      (
        await query(
          'ada',
          "with gone as (delete from notes where text in ('a', 'b') returning text) select text from gone order by text;",
        )
      ).json(),
      { rows: [{ text: 'a' }, { text: 'b' }], count: 2 },
    )
    t.same(await notes(tenant), [
      { owner_id: 'ada', text: 'the lamp is lit' },
      { owner_id: 'ben', text: 'the window is shut' },
    ])
  })

  t.test('A function with the service role reads and changes all rows', async (t) => {
    t.same((await query('ada', 'select owner_id from notes order by 1', [], 'master')).json(), {
      rows: [{ owner_id: 'ada' }, { owner_id: 'ben' }],
      count: 2,
    })
    t.same(
      (
        await query(
          'ada',
          "update notes set text = 'the window is open' where owner_id = 'ben' returning text",
          [],
          'master',
        )
      ).json(),
      { rows: [{ text: 'the window is open' }], count: 1 },
    )
    t.same((await notes(tenant))[1], { owner_id: 'ben', text: 'the window is open' })
  })

  t.test('No statement leaves the context of its caller', async (t) => {
    for (const sql of [
      "select set_config('app.role', 'service_role', true), text from notes",
      `with c as (select "set_config"('app.role', 'service_role', true)) select n.text from c, notes n`,
      `select U&"set\\005fconfig"('app.role', 'service_role', true)`,
      "select query_to_xml('select set_config(''app.role'', ''service_role'', true)', true, true, '')",
      "update pg_settings set setting = 'x' where name = 'app.role'",
      'set app.role = service_role',
      "select 1) select set_config('app.role', 'service_role', true) from (select 2",
    ])
      t.equal((await query('ada', sql)).code, 'STATEMENT_REJECTED', sql)
    t.same(
      (await query('ada', "select current_setting('app.role') as role, current_setting('app.user_id') as id")).json(),
      { rows: [{ role: 'authenticated', id: 'ada' }], count: 1 },
    )
  })

  t.test("A function cannot change the runtime's own tables, nor read those without a policy", async (t) => {
    const tables = (
      await tenant.rows(
        "select relname from pg_class where relnamespace = $1::regnamespace and relkind in ('r', 'p', 'v', 'm') order by 1",
        [tenant.id],
      )
    ).map(({ relname }) => String(relname))
    const shown = tables.filter((table) => systemCollections.has(table))
    t.same(
      tables.filter((table) => !reservedCollections.has(table)),
      ['notes'],
      "the tenant's own collection is the only table that is not reserved",
    )
    t.equal(shown.length, systemCollections.size)
    for (const table of tables.filter((table) => table !== 'notes')) {
      const read = await query('ada', `select count(*) as n from ${table}`)
      if (shown.includes(table)) t.ok(read.ok, `${table}: its policies filter the rows`)
      else t.equal(read.code, 'STATEMENT_REJECTED', table)
      for (const sql of [
        `delete from ${table}`,
        `with g as (delete from "${table}" returning 1) select 1`,
        `insert into "${tenant.id}".${table.toUpperCase()} default values`,
        `merge into only ${table} t using notes n on true when matched then delete`,
      ]) {
        t.equal((await query('ada', sql)).code, 'STATEMENT_REJECTED', sql)
      }
    }
    t.ok((await query('ada', 'select * from blob_gc', [], 'master')).ok, 'a function with the service role')
  })

  t.test('Rows are JSON as Postgres creates it, and parameters take the types of the statement', async (t) => {
    const { rows } = (
      await query(
        'ada',
        `select $1::int + 1 as n, $2::text as t, $3::jsonb as j, $4::boolean as b,
          $5::text as nothing, array[1, 2] as a, 12345678901234567890::numeric as big,
          timestamptz '2026-01-02 03:04:05Z' as at`,
        [1, 'ä"', { a: [1, null] }, true, null],
      )
    ).json() as { rows: unknown[] }
    t.match(rows, [
      { n: 2, t: 'ä"', j: { a: [1, null] }, b: true, nothing: null, a: [1, 2], at: '2026-01-02T03:04:05+00:00' },
    ])
    t.same((await query('ada', 'values (1), (2)')).json(), { rows: [{ column1: 1 }, { column1: 2 }], count: 2 })
    t.match(
      (await query('ada', 'select 12345678901234567890::numeric as big')).text,
      /"big":12345678901234567890/,
      'no digit is lost',
    )
  })

  t.test('Errors contain the message of Postgres', async (t) => {
    const codes: [sql: string, parameters: string, code: string, message: RegExp][] = [
      ['select * from nowhere', '[]', 'INVALID_QUERY', /relation \\"nowhere\\" does not exist.*"sqlstate":"42P01"/],
      ['select from from', '[]', 'INVALID_QUERY', /syntax error.*42601/],
      ["select 'x'::int", '[]', 'INVALID_FIELD', /invalid input syntax for type integer/],
      ['select $1', '[1, 2]', 'INVALID_PARAMETERS', /requires 1/],
      ['select $1::text', '["a\\u0000"]', 'INVALID_FIELD', /./],
      ['select 1', '{}', 'INVALID_PARAMETERS', /array/],
      ['select 1', '[', 'INVALID_PARAMETERS', /JSON/],
      ['create table mine ()', '[]', 'STATEMENT_REJECTED', /must begin with one of SELECT/],
      ['select 1 into mine', '[]', 'INVALID_QUERY', /INTO is not allowed/],
      ['select 1/0', '[]', 'INVALID_FIELD', /division by zero/],
    ]
    for (const [sql, parameters, code, message] of codes) {
      const result = await callHost(tenant, 'host-caller', 'ada', 'query', sql, parameters)
      t.equal(result.code, code, `${sql}: ${result.text}`)
      t.match(result.text, message)
    }
  })

  t.test('A response beyond six megabytes is rejected, and its statement is rolled back', async (t) => {
    t.equal(
      (await query('ada', "select repeat('x', 6000000) as x")).text,
      String('{"rows":[{"x":""}],"count":1}'.length + 6_000_000),
    )
    t.equal((await query('ada', "select repeat('x', 6291456) as x")).code, 'ANSWER_TOO_LARGE')
    t.equal((await query('ada', "select generate_series(1, 100000000), repeat('x', 1000)")).code, 'ANSWER_TOO_LARGE')
    t.equal(
      (await query('ada', "update notes set text = 'much' returning repeat('x', 7000000)")).code,
      'ANSWER_TOO_LARGE',
    )
    t.same((await notes(tenant))[0], { owner_id: 'ada', text: 'the lamp is lit' })
  })

  t.test("The runtime cancels the statement of a function at the function's deadline", async (t) => {
    const slow = `with n as (insert into notes (owner_id, text) values ('ada', 'too late') returning 1),
        s as (select pg_sleep(60) from n) select * from s`
    const response = await tenant.request('POST', '/functions/v1/invoke/host-caller', {
      as: 'ada',
      body: ['query', slow, '', ''].join('\u001e'),
      headers: { 'content-type': 'text/plain' },
    })
    t.equal(response.status, 504, response.text)
    for (;;) {
      const [open] = await tenant.rows(
        "select count(*)::int as n from pg_stat_activity where usename = $1 and query like '%too late%'",
        [tenant.id],
      )
      if (open?.['n'] === 0) break
    }
    t.same(await notes(tenant), [
      { owner_id: 'ada', text: 'the lamp is lit' },
      { owner_id: 'ben', text: 'the window is open' },
    ])
  })

  t.test('An error that a function does not handle fails the invocation, and reveals no secret', async (t) => {
    const response = await tenant.request('POST', '/functions/v1/invoke/host-caller', {
      as: 'ada',
      body: ['must', `select '${canary}'::int`].join('\u001e'),
      headers: { 'content-type': 'text/plain' },
    })
    t.equal(response.status, 500)
    t.equal(response.json()['code'], 'HOST_FUNCTION_ERROR')
    t.match(response.json()['message'], /db_query: .*invalid input syntax for type integer.*\[redacted\]/)
    t.notMatch(response.text, canary)
    const [record] = await tenant.rows('select status, error_message from function_invocations where id = $1', [
      response.headers['x-invocation-id'] ??
        (await tenant.rows('select id from function_invocations order by timestamp desc limit 1'))[0]?.['id'],
    ])
    t.equal(record?.['status'], 'error')
    t.notMatch(String(record?.['error_message']), canary)
  })
})

t.test(
  "No statement changes the session for later ones, whatever the tenant's own functions do",
  { timeout: 180_000 },
  async (t) => {
    // All requests of the tenant share one connection.
    const { tenant } = await setUp(t, { connections: { perTenant: 1 } })
    const asOwner = (sql: string) =>
      tenant.rows(`set role "${tenant.id}_owner"; set search_path = "${tenant.id}"; ${sql}; reset role`)
    const messes: [what: string, body: string][] = [
      [
        'a setting',
        `perform set_config('app.role', 'service_role', false), set_config('statement_timeout', '1', false),
          set_config('search_path', 'pg_catalog', false), set_config('work_mem', '64kB', false)`,
      ],
      ['a listener', "execute 'listen messages'"],
      ['a prepared statement', "execute 'prepare s1000 as select 1'"],
      ['a cursor', "execute 'declare c cursor with hold for select 1'"],
    ]
    for (const [n, [, body]] of messes.entries())
      await asOwner(`create function mess_${n}() returns int language plpgsql as $f$ begin ${body}; return 1; end $f$`)
    await asOwner(
      `create function fails() returns int language plpgsql as $f$
        begin perform set_config('app.role', 'service_role', false); raise exception 'no'; end $f$`,
    )
    const state = `select current_setting('statement_timeout') as timeout, current_setting('work_mem') as memory,
      current_setting('app.role') as role, current_schema() as schema,
      (select count(*) from pg_prepared_statements where from_sql) as prepared,
      (select count(*) from pg_cursors where is_holdable) as cursors,
      (select count(*) from pg_listening_channels()) as channels,
      (select count(*) from notes) as notes`
    const clean = (await callHost(tenant, 'host-caller', 'ada', 'query', state)).json()
    t.match(clean, {
      rows: [
        { timeout: '30s', role: 'authenticated', schema: tenant.id, prepared: 0, cursors: 0, channels: 0, notes: 1 },
      ],
    })
    for (const [n, [what]] of messes.entries()) {
      t.ok((await callHost(tenant, 'host-caller', 'ada', 'query', `select mess_${n}()`)).ok, what)
      t.same((await callHost(tenant, 'host-caller', 'ada', 'query', state)).json(), clean, what)
      t.equal(
        (await tenant.request('GET', '/rest/v1/notes', { as: 'ada' })).list().length,
        1,
        `${what}: a request after it`,
      )
    }
    t.equal((await tenant.request('POST', '/admin/reload-schemas', { as: 'service', body: {} })).status, 200)
    for (const [n, [what]] of messes.entries()) {
      t.equal(
        (await tenant.request('POST', `/rest/v1/rpc/mess_${n}`, { as: 'ada', body: {} })).text,
        '1',
        `${what}, by REST`,
      )
      t.same((await callHost(tenant, 'host-caller', 'ada', 'query', state)).json(), clean, `${what}, by REST`)
    }
    t.equal((await callHost(tenant, 'host-caller', 'ada', 'query', 'select fails()')).ok, false)
    t.same(
      (await callHost(tenant, 'host-caller', 'ada', 'query', state)).json(),
      clean,
      'after a statement that failed',
    )
    t.ok((await callHost(tenant, 'master', 'ada', 'query', "select set_config('work_mem', '64kB', false)")).ok)
    t.same(
      (await callHost(tenant, 'host-caller', 'ada', 'query', state)).json(),
      clean,
      'after a statement of the service',
    )
  },
)
