// The guard of db_query: which statements it accepts and rejects, and that no accepted statement changes its caller's
// context.
import fc from 'fast-check'
import pg from 'pg'
import t from 'tap'
import { guardStatement } from '#tenant-runtime/functions/host/guarded-statement.ts'
import { readTokens } from '#tenant-runtime/functions/host/sql-tokens.ts'
import { effort, seed } from '#test/support/effort.ts'
import { startPostgres } from '#test/support/postgres.ts'

const words = (sql: string) => readTokens(sql).map(({ kind, text }) => `${kind}:${text}`)

t.test('readTokens divides statements as Postgres does', async (t) => {
  t.same(words(`select "A b".x, 'it''s', 1.5e3 from t where y = $1`), [
    'word:select',
    'name:A b',
    'sign:.',
    'word:x',
    'sign:,',
    "string:'it''s'",
    'sign:,',
    'number:1.5e3',
    'word:from',
    'word:t',
    'word:where',
    'word:y',
    'sign:=',
    'parameter:$1',
  ])
  t.same(words(`E'a\\'b' -- rest ' "\n x`), [`string:E'a\\'b'`, 'word:x'])
  t.same(words("/* a /* b */ ' */ x"), ['word:x'])
  t.same(words("$$ ' $$, $a$ $$ $a$"), ["string:$$ ' $$", 'sign:,', 'string:$a$ $$ $a$'])
  t.same(words("a$b$ 'c'"), ['word:a$b$', "string:'c'"], 'a dollar within a word')
  t.same(words("name'text'"), ['word:name', "string:'text'"], 'an e at the end of a word does not begin a string')
  t.same(words('a*/b'), ['word:a', 'sign:*', 'sign:/', 'word:b'])
  t.same(words('"a""b" "--"'), ['name:a"b', 'name:--'])
  t.same(words('ÄÖ é'), ['word:äö', 'word:é'])
  for (const open of [
    "'a",
    '"a',
    '/* a',
    '/* /* */',
    '$$ a',
    '$a$ $b$',
    "E'a\\'",
    '(',
    ')',
    '(()',
    '1a',
    '$1a',
    '0x1g',
    'a\0b',
    '$',
    "U&'a'",
    'u&"a"',
    "'a'\n'b'",
    "E'a' /* */ 'b'",
  ]) {
    t.throws(() => readTokens(open), SyntaxError, open)
  }
})

t.test('guardStatement wraps a statement so that it returns its rows or their count', async (t) => {
  const made = (sql: string) => guardStatement(sql, true).text
  t.equal(
    made('select 1'),
    'with tenantry_result as (select 1) select row_to_json(tenantry_result)::text from tenantry_result',
  )
  t.equal(made('select 1; -- end'), made('select 1'))
  t.match(
    made('with a as (select 1) select * from a'),
    /^with a as \(select 1\) , tenantry_result as \(select \* from a\)/,
  )
  t.match(made('delete from a -- all\n'), /\(delete from a returning 1\) select count/)
  t.match(
    made('insert into a values (1) returning id'),
    /\(insert into a values \(1\) returning id\) select row_to_json/,
  )
  t.match(
    made('insert into a (select 1 as returning) on conflict do nothing'),
    /do nothing returning 1\)/,
    'a word in brackets is not a clause of the statement',
  )
})

t.test('guardStatement rejects all but one query or change, and the functions and tables of the system', async (t) => {
  const bad = [
    '',
    ';',
    'set app.role = 1',
    'do $$ begin end $$',
    'begin',
    'commit',
    'rollback',
    'copy t to stdout',
    'listen a',
    'notify a',
    'prepare a as select 1',
    'execute a',
    'declare a cursor for select 1',
    'create temp table a ()',
    'reset all',
    'discard all',
    'lock a',
    'call a()',
    'explain select 1',
    'vacuum',
    'table a',
    '(select 1)',
    '"select" 1',
    'select 1; select 2',
    'select 1;;select 2',
    'select 1) select (2',
    'with a as (select 1)',
    'with',
    "select set_config('app.role', 'service_role', true)",
    'select SET_CONFIG(a, b, c)',
    'select "set_config"(a)',
    'select pg_catalog . /* */ "set_config" (a)',
    'select $$a$$, set_config(a)',
    "update pg_settings set setting = 'x'",
    "select query_to_xml('select 1', true, true, '')",
    'select pg_catalog.query_to_xml_and_xmlschema(a)',
    "select cursor_to_xml('a', 1, true, true, '')",
    "select * from ts_stat('select 1')",
    "select ts_rewrite(a, 'select 1')",
    "select * from dblink('a', 'b')",
    'select pg_advisory_lock(1)',
    'select pg_try_advisory_lock_shared(1)',
    'select pg_terminate_backend(1)',
    "select pg_notify('a', 'b')",
    'select query from pg_stat_activity',
    'select pg_stat_get_backend_activity(1)',
    'select * from pg_stat_statements_info',
    'select lo_create(1)',
    'with a as (select set_config(b)) select 1',
    'insert into a values (set_config(b))',
    'select * from blob_gc',
    'select * from "blob_intents"',
    'delete from storage_objects',
    'with a as (insert into event_log default values) select 1',
    'insert into a select id from storage_objects',
    'select * from functions for update',
  ]
  for (const sql of bad) t.throws(() => guardStatement(sql, true), { code: 'STATEMENT_REJECTED' }, sql)
  for (const sql of [
    "select 'set_config'",
    'select 1 -- set_config(',
    'select /* set_config() */ 1',
    'select $a$ set_config($a$',
    'select my_set_config(1)',
    'select setting_config',
    'select lo_limit, invoice_to_xml from a',
    "select e'\\'set_config('",
  ]) {
    t.doesNotThrow(() => guardStatement(sql, true), sql)
  }
  t.doesNotThrow(() => guardStatement('select path from storage_objects', true))
  t.doesNotThrow(
    () => guardStatement("select set_config('a.b', 'c', true)", false),
    'a function with the service role may set the context',
  )
  t.throws(
    () => guardStatement('set role x', false),
    { code: 'STATEMENT_REJECTED' },
    'a function with the service role may run only queries and changes',
  )
})

t.test(
  'No accepted statement changes the context, even where its quoting is ambiguous',
  { timeout: 300_000 },
  async (t) => {
    const postgres = await startPostgres()
    t.teardown(() => postgres.stop())
    const client = new pg.Client({ connectionString: postgres.url('postgres') })
    await client.connect()
    t.teardown(() => client.end())
    await client.query("select set_config('app.role', 'anon', false)")
    const attack = "set_config('app.role','service_role',false)"
    const chunk = fc.constantFrom(
      "'",
      "''",
      '"',
      '$$',
      '$a$',
      '$a',
      "E'",
      "e'",
      "x'",
      "N'",
      "U&'",
      'u&"',
      '\\',
      "\\'",
      '/*',
      '*/',
      '--',
      '\n',
      '\r',
      ' ',
      ',',
      '(',
      ')',
      '1',
      '1.',
      '.1',
      '$1',
      'a',
      '+',
      ' as a',
      '||',
      '::text',
      ';',
      'é',
      '\u00a0',
      "E'a'\n'",
      "E'\\''",
      "\\''",
      "x''",
      '/*/*',
      '*/*/',
      '$$a$',
      "''''",
      '1e',
      '""',
      attack,
      `,${attack}`,
      `||${attack}`,
      `, ${attack} as b`,
      ' union select ',
      'select ',
    )
    // Chunks that two parsers are most likely to read differently, generated more often than by chance.
    const trap = fc.constantFrom(
      ",E'a'\n'\\''",
      ",E'\\'",
      "--'",
      "'a'\n'",
      '/*/**/',
      '$a$$b$',
      ',',
      `,${attack}`,
      '--',
      "'",
      '$$',
      '*/',
      '\n',
    )
    let accepted = 0
    let run = 0
    await fc.assert(
      fc.asyncProperty(
        fc.oneof(fc.array(chunk, { minLength: 1, maxLength: 14 }), fc.array(trap, { minLength: 1, maxLength: 6 })),
        async (chunks) => {
          const sql = `select 1 ${chunks.join('')}`
          let text: string
          try {
            text = guardStatement(sql, true).text
          } catch {
            return
          }
          accepted++
          // Postgres runs the statement as it is and as the guard rewrote it.
          for (const statement of [sql, text]) {
            await client.query({ text: statement, values: statement.includes('$1') ? ['1'] : [] }).then(
              () => run++,
              () => undefined,
            )
            const { rows } = await client.query<{ role: string }>("select current_setting('app.role') as role")
            if (rows[0]?.role !== 'anon') throw new Error(`the role became ${rows[0]?.role ?? 'unset'}`)
          }
        },
      ),
      { seed, numRuns: effort({ small: 12_000, full: 500_000 }) },
    )
    t.ok(accepted > 500, `${accepted} statements were accepted`)
    t.ok(run > 100, `${run} of them ran`)
  },
)

t.test('The tokens cover a whole statement except its blanks and comments', async () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', '1', "'", '"', '$', ' ', '\n', '(', ')', '.', '+', 'é') }),
      (sql) => {
        let tokens
        try {
          tokens = readTokens(sql)
        } catch {
          return true
        }
        const between = [
          ...tokens.map(({ begin }, n) => sql.slice(tokens[n - 1]?.end ?? 0, begin)),
          sql.slice(tokens.at(-1)?.end ?? 0),
        ]
        return between.every((gap) => /^[ \n]*$/.test(gap)) && tokens.every(({ begin, end }) => begin < end)
      },
    ),
    { seed, numRuns: effort({ small: 5_000, full: 100_000 }) },
  )
})
