// Random SQL of a tenant: tables with every type and kind of column, keys, partitions, policies, triggers and unusual names.
import fc from 'fast-check'

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`
const text = (value: string) => `'${value.replaceAll("'", "''")}'`

/** Types, each with expressions of its values. */
const types: readonly (readonly [type: string, values: readonly string[]])[] = [
  ['smallint', ['-32768', '32767']],
  ['integer', ['0', '-2147483648']],
  ['bigint', ['9223372036854775807', '-1']],
  ['numeric', ["'NaN'", '1e40', '-0.0000000000000000001']],
  ['numeric(12,3)', ['1.5', '-999999999.999']],
  ['real', ["'NaN'", "'-Infinity'", '3.4028235e38', '1.1']],
  ['double precision', ["'Infinity'", '-0.0', '5e-324', '0.1']],
  ['text', ["''", "'NULL'", String.raw`E'\\N\t\n\r\\.'`, "'😀 ü'", "repeat('x', 9000)", '\'{"a"}\'']],
  ['text collate "C"', ["'ä'", "'Z'"]],
  ['character varying(12)', ["'a b '", "''"]],
  ['character(5)', ["'x'", "'12345'"]],
  ['"char"', ["'q'"]],
  ['name', ["'a name'"]],
  ['boolean', ['true', 'false']],
  ['date', ["'4713-01-01 BC'", "'infinity'", "'2026-02-28'"]],
  ['timestamp', ["'-infinity'", "'2026-03-29 02:30:00.123456'"]],
  ['timestamptz(3)', ["'2026-10-25 02:30:00.123+02'", "'0001-01-01 BC'"]],
  ['time', ["'24:00:00'", "'00:00:00.000001'"]],
  ['timetz', ["'12:00:00+05:30'"]],
  ['interval', ["'1 year -3 days 04:05:06.7'", "'-178000000 years'"]],
  ['uuid', ["'00000000-0000-4000-8000-000000000000'"]],
  ['json', [String.raw`'{"b": 1, "b": "\u00e4", "a": null}'`, "' [1 , 2]'"]],
  ['jsonb', [String.raw`'{"b": 1e100, "a": ["\"", {}]}'`, "'null'"]],
  ['bytea', [String.raw`'\x00ff5c0a'`, "''"]],
  ['inet', ["'10.0.0.1/8'", "'::1'"]],
  ['macaddr', ["'08:00:2b:01:02:03'"]],
  ['bit(5)', ["B'10101'"]],
  ['bit varying', ["B''", "B'1'"]],
  ['int4range', ["'empty'", "'[1,5)'", "'(,3]'"]],
  ['tstzmultirange', ["'{[2026-01-01,2026-02-01),(2026-03-01,)}'"]],
  ['point', ["'(1e-10,2)'"]],
  ['polygon', ["'((0,0),(1,1),(1,0))'"]],
  ['tsvector', ["'it''s:1A fat'"]],
  ['xml', ['\'<a b="1">x</a>\'']],
  ['integer[]', ["'[2:3]={1,NULL}'", "'{}'", "'{{1,2},{3,4}}'"]],
  ['text[]', [String.raw`array['NULL', null, '', 'a,b', '"', E'\\']`]],
  ['mood', ["'calm'", "'it''s so'"]],
  ['mood[]', ["array['calm', null]::mood[]"]],
  ['short', ["'brief'"]],
  ['pair', ["row(1, 'calm')", 'row(null, null)']],
  ['pair[]', ["array[row(2, 'it''s so')::pair]"]],
]

/** Names before a number makes them unique; the last one is as long as Postgres permits. */
const words = [
  'plain',
  'select',
  'CamelCase',
  'with space',
  'it\'s "so"',
  'a.b',
  '日本 ü 😀',
  '%s $1',
  'back\\slash',
  '-- dashes',
  'x'.repeat(61),
]
const name = fc.constantFrom(...words)

const column = fc.record({
  name,
  type: fc.constantFrom(...types),
  kind: fc.constantFrom('plain', 'plain', 'plain', 'not null', 'default', 'dropped', 'tuned', 'stored'),
  comment: fc.boolean(),
})
const key = fc.constantFrom('none', 'identity', 'always', 'serial', 'uuid', 'pair', 'index')
const table = fc.record({
  name,
  columns: fc.array(column, { maxLength: 7 }),
  key,
  identity: fc.constantFrom('default', 'default', 'full', 'nothing', 'index'),
  parent: fc.constantFrom('', 'on delete cascade', 'on update set null deferrable initially deferred', 'not valid'),
  extras: fc.subarray([
    'check',
    'exclude',
    'generated',
    'gin',
    'expression index',
    'partial index',
    'policies',
    'forced',
    'trigger',
    'disabled trigger',
    'constraint trigger',
    'rule',
    'statistics',
    'view',
    'filled view',
    'fillfactor',
    'comment',
  ]),
  rows: fc.nat({ max: 12 }),
})
const partitioned = fc.record({
  by: fc.constantFrom('range', 'list', 'hash'),
  hasKey: fc.boolean(),
  rows: fc.nat({ max: 20 }),
})

const home = fc.record({ tables: fc.array(table, { minLength: 1, maxLength: 5 }), partitioned: fc.option(partitioned) })
type Table = typeof table extends fc.Arbitrary<infer T> ? T : never
type Partitioned = typeof partitioned extends fc.Arbitrary<infer T> ? T : never

const sharedSql = `
  set constraints all immediate;
  create type mood as enum ('calm', 'it''s so');
  create domain short as varchar(20) collate "C" default 'x' constraint "shortish?" check (length(value) < 15);
  create type pair as (left_part int, "right part" mood);
  create sequence "apart Sequence" as smallint increment -3 minvalue -100 maxvalue 90 start 60 cache 2 cycle;
  select nextval('"apart Sequence"');
  create function touch() returns trigger language plpgsql as $$ begin return new; end $$;
  create function label(n int, variadic others text[] default '{}') returns text language sql immutable parallel safe cost 7
    return 'n' || n || array_length(others, 1);
  create function label(n text) returns setof text language plpgsql security definer set search_path = pg_catalog, pg_temp
    as $body$ begin return query select 'n' || n; end $body$;
  create procedure nothing(inout n int) language sql begin atomic select n + 1; end;
  revoke execute on function label(text) from public;
  comment on function label(text) is 'it''s "so"';`

/** SQL that creates a random home: the shared types and functions, its tables with their rows, and perhaps a partitioned table. */
export const homeSql: fc.Arbitrary<string> = home.map(({ tables, partitioned: parts }) =>
  [
    sharedSql,
    ...tables.map((one, at) => tableSql(one, at, tables)),
    ...(parts === null ? [] : [partitionedSql(parts)]),
  ].join('\n'),
)

/** Returns a name that is unique at a position, with at most 63 bytes. */
const unique = (word: string, at: number) => quoted(`${word}${String(at).padStart(2, '0')}`)
const tableName = (tables: readonly Table[], at: number) => unique(tables[at]?.name ?? '', at)

const keys: Record<Table['key'], string> = {
  none: '',
  identity: 'id bigint generated by default as identity (start 5 increment 2) primary key',
  always: 'id int generated always as identity primary key',
  serial: 'id serial primary key',
  uuid: 'id uuid primary key default gen_random_uuid()',
  pair: 'id int default 1, other text default gen_random_uuid()::text, primary key (other, id)',
  index: 'id bigint generated by default as identity, unique nulls not distinct (id)',
}

function tableSql(one: Table, at: number, tables: readonly Table[]): string {
  const name = tableName(tables, at)
  const has = (extra: string) => one.extras.includes(extra)
  const when = (extra: string, ...sql: string[]) => (has(extra) ? sql : [])
  const parent = tables.findIndex((other, n) => n < at && other.key === 'always')
  const references = one.parent !== '' && parent >= 0
  const isLate = one.parent === 'not valid'
  const columns = one.columns.map(({ name: word, type: [type, values], kind }, n) => {
    const filled = kind === 'not null' || kind === 'default' ? ` default ${values[0] ?? 'null'}` : ''
    return `${unique(word, n)} ${type}${filled}${kind === 'not null' ? ' not null' : ''}`
  })
  const definitions = [
    ...(keys[one.key] === '' ? [] : [keys[one.key]]),
    'number int default 7',
    'doc jsonb',
    ...columns,
    ...when('generated', `"generated" text generated always as ('<' || number || '>') stored`),
    ...when('check', `constraint "number's check" check (number > -100) no inherit`),
    ...when('exclude', 'span int4range, exclude using gist (span with &&) where (number > 1)'),
    ...(references ? [`parent int${isLate ? '' : ` references ${tableName(tables, parent)} ${one.parent}`}`] : []),
  ]
  const named = (suffix: string) => quoted(`${suffix} of ${at}`)
  const changes = one.columns.flatMap(({ name: word, type: [type], kind, comment }, n) => {
    const column = unique(word, n)
    if (kind === 'dropped') return [`alter table ${name} drop column ${column}`]
    return [
      ...(comment ? [`comment on column ${name}.${column} is ${text(`of ${word}`)}`] : []),
      ...(kind === 'tuned'
        ? [
            `alter table ${name} alter column ${column} set statistics 300, alter column ${column} set (n_distinct = -0.5)`,
          ]
        : []),
      ...(kind === 'stored' && /^(text|jsonb|bytea|numeric|integer\[\])$/.test(type)
        ? [
            `alter table ${name} alter column ${column} set storage external, alter column ${column} set compression pglz`,
          ]
        : []),
    ]
  })
  const indexed = one.key === 'always' || one.key === 'identity' ? 'number, id desc' : 'number'
  return [
    `create table ${name} (${definitions.join(', ')})${has('fillfactor') ? ' with (fillfactor = 70, autovacuum_enabled = false)' : ''}`,
    ...changes,
    ...Array.from({ length: one.rows }, (_, n) => rowSql(one, name, n)),
    ...(references && isLate
      ? [
          `alter table ${name} add constraint "later" foreign key (parent) references ${tableName(tables, parent)} not valid`,
        ]
      : []),
    ...when('gin', `create index ${named('gin')} on ${name} using gin (doc jsonb_path_ops)`),
    ...when(
      'expression index',
      `create index ${named('expression')} on ${name} (label(number), (doc ->> 'a') nulls first)`,
    ),
    ...when(
      'partial index',
      `create index ${named('partial')} on ${name} (${indexed}) include (doc) where number is not null`,
    ),
    ...when('statistics', `create statistics ${named('statistics')} (mcv) on number, (doc ->> 'a') from ${name}`),
    ...when(
      'policies',
      `create policy "it's mine" on ${name} for update using (number > 1) with check (doc is not null)`,
      `create policy "and yours" on ${name} as restrictive for select to public
        using (exists (select from ${name} other where other.number = 7))`,
      `alter table ${name} enable row level security`,
    ),
    ...when('forced', `alter table ${name} force row level security`),
    ...when(
      'trigger',
      `create trigger ${named('trigger')} before insert or update of number on ${name}
        for each row when (new.number > 3) execute function touch('it''s', 'so')`,
    ),
    ...when(
      'disabled trigger',
      `create trigger ${named('disabled')} after delete on ${name} referencing old table as gone
        for each statement execute function touch()`,
      `alter table ${name} disable trigger ${named('disabled')}`,
    ),
    ...when(
      'constraint trigger',
      `create constraint trigger ${named('constraint')} after insert on ${name} deferrable initially deferred
        for each row execute function touch()`,
    ),
    ...when('rule', `create rule ${named('rule')} as on delete to ${name} where old.number = 3 do also select 1`),
    ...when(
      'view',
      `create view ${named('view')} with (security_barrier) as select number, doc from ${name} where number > 2 with local check option`,
    ),
    ...when(
      'filled view',
      `create materialized view ${named('filled')} as select number, count(*) from ${name} group by 1`,
    ),
    ...when('comment', `comment on table ${name} is ${text(`a table: ${one.name}`)}`),
    ...identitySql(one, name, named('identity')),
    '',
  ].join(';\n')
}

function identitySql({ identity }: Table, name: string, index: string): string[] {
  if (identity === 'default') return []
  if (identity !== 'index') return [`alter table ${name} replica identity ${identity}`]
  return [
    `alter table ${name} add column code uuid not null default gen_random_uuid()`,
    `create unique index ${index} on ${name} (code)`,
    `alter table ${name} replica identity using index ${index}`,
  ]
}

function rowSql(one: Table, name: string, n: number): string {
  const live = one.columns.map((each, at) => ({ ...each, at })).filter(({ kind }) => kind !== 'dropped')
  const values = live.map(({ type: [, values], kind }) =>
    n % 4 === 3 && kind !== 'not null' ? 'null' : (values[n % values.length] ?? 'null'),
  )
  const names = live.map(({ name: word, at }) => unique(word, at))
  const document = text(JSON.stringify({ a: n, b: 'x'.repeat(n === 5 ? 5_000 : n) }))
  return `insert into ${name} (${['number', 'doc', ...names].join(', ')}) values (${[String(n % 9), document, ...values].join(', ')})`
}

const partitions: Record<Partitioned['by'], string[]> = {
  range: ['for values from (minvalue) to (5)', 'for values from (5) to (9)', 'default'],
  list: ['for values in (1, 3, null)', 'for values in (2)', 'default'],
  hash: [0, 1, 2].map((n) => `for values with (modulus 3, remainder ${n})`),
}

function partitionedSql({ by, hasKey, rows }: Partitioned): string {
  const isKeyed = hasKey && by !== 'list'
  return [
    `create table "the parts" (id int${isKeyed ? ' primary key' : ''}, body text, double int generated always as (id * 2) stored)
      partition by ${by} (id)`,
    ...partitions[by].map((bound, n) => `create table "part ${n}" partition of "the parts" ${bound}`),
    'create index on "the parts" (body)',
    'create trigger "each part" after insert on "the parts" for each row execute function touch()',
    `insert into "the parts" select n, 'body ' || n from generate_series(1, ${rows}) n`,
    `alter table "part 1" add check (id > -1)`,
    '',
  ].join(';\n')
}
