// The home of the feature tests: tables of every kind, created with SQL under row-level security, and a collection that
// a schema describes. Also the compared parts of a response.
import type { Test } from 'tap'
import { callScene } from './call-scene.ts'
import { query } from '#test/support/postgres.ts'
import type { ApiResponse, RequestOptions, TestRuntime, TestTenant } from '#test/support/runtime.ts'

export interface Scene {
  t: Test
  tenant: TestTenant
  /** Sends a request as the service role, below `/rest/v1`. */
  request(method: string, path: string, options?: RequestOptions): Promise<ApiResponse>
  /** Checks that this is the whole response. */
  expect(request: Request, wanted: Seen): Promise<ApiResponse>
  /** Returns stored rows as the database's superuser sees them. */
  rows(sql: string): Promise<Record<string, unknown>[]>
}

export interface Request extends RequestOptions {
  method?: string
  path: string
}

/** The compared parts of a response: its status, its body (parsed if it is JSON), and the headers of the interface. */
export interface Seen {
  status: number
  headers: Record<string, string>
  body: unknown
}

export interface Feature {
  /** The feature in PostgREST's terms. */
  feature: string
  /** The state of the feature here; `absent` means that a request for it is rejected with a clear error. */
  here: 'same' | 'differs' | 'absent'
  note?: string
  check: (scene: Scene) => Promise<unknown>
}

const reporting = ['content-type', 'content-range', 'preference-applied', 'location', 'allow', 'www-authenticate']

export function seen({ status, headers, text }: ApiResponse): Seen {
  const shown = reporting.flatMap((name) =>
    headers[name] === undefined ? [] : [[name, String(headers[name])] as const],
  )
  const isJson = String(headers['content-type']).includes('json') && text !== ''
  return { status, headers: Object.fromEntries(shown), body: isJson ? (JSON.parse(text) as unknown) : text }
}

export const json = 'application/json; charset=utf-8'

/** Returns the response of a list that was read. */
export function rows(
  body: readonly unknown[],
  { status = 200, range, ...headers }: { status?: number; range?: string } & Record<string, unknown> = {},
): Seen {
  const all = range ?? (body.length === 0 ? '*/*' : `0-${body.length - 1}/*`)
  return {
    status,
    headers: { 'content-type': json, 'content-range': all, ...(headers as Record<string, string>) },
    body,
  }
}

const tags: Record<number, string> = {
  300: 'ambiguous',
  400: 'bad_request',
  401: 'Unauthorized',
  402: 'raised',
  403: 'forbidden',
  404: 'not_found',
  405: 'method_not_allowed',
  406: 'not_acceptable',
  409: 'conflict',
  413: 'Payload too large',
  416: 'range_not_satisfiable',
}

/** Returns the response of an error with all its members. */
export function rejected(
  status: number,
  code: string,
  message: string,
  {
    details = null,
    hint = null,
    error = tags[status] ?? '',
  }: { details?: unknown; hint?: string | null; error?: string } = {},
): Seen {
  return {
    status,
    headers: { 'content-type': json, ...(status === 401 ? { 'www-authenticate': 'Bearer' } : {}) },
    body: { statusCode: String(status), error, message, code, details, hint },
  }
}

/** Returns a check of one request. */
export function gives(request: string | Request, wanted: Seen): Feature['check'] {
  return ({ expect }) => expect(typeof request === 'string' ? { path: request } : request, wanted)
}

/** Returns a check of several requests: each path, and the rows of its response. */
export function give(...pairs: readonly (readonly [path: string, body: readonly unknown[]])[]): Feature['check'] {
  return async ({ expect }) => {
    for (const [path, body] of pairs) await expect({ path }, rows(body))
  }
}

/** Creates the scene once; each test then enters it. */
export async function makeScene(runtime: TestRuntime): Promise<(t: Test) => Scene> {
  const tenant = await runtime.addTenant()
  await query(tenant.home.adminUrl, tables)
  await query(tenant.home.adminUrl, routines)
  await query(tenant.home.adminUrl, callScene)
  await query(tenant.home.adminUrl, content)
  const request: Scene['request'] = (method, path, options) =>
    tenant.request(method, `/rest/v1${path.replaceAll(' ', '%20')}`, { as: 'service', ...options })
  const notes = {
    name: 'notes',
    rls_policy: { type: 'ownership', owner_field: 'owner' },
    fields: [
      { name: 'id', type: 'uuid', primary: true },
      { name: 'owner', type: 'string' },
      { name: 'text', type: 'string', required: true },
      { name: 'rank', type: 'number' },
    ],
  }
  for (const [path, body] of [
    ['/rest/v1/schemas', notes],
    ['/admin/reload-schemas', {}],
  ] as const) {
    const response = await tenant.request('POST', path, { as: 'service', body })
    if (response.status >= 300) throw new Error(response.text)
  }
  return (t) => ({
    t,
    tenant,
    request,
    async expect({ method = 'GET', path, ...options }, wanted) {
      const response = await request(method, path, options)
      t.same(seen(response), wanted, `${method} ${decodeURI(path)}`)
      return response
    },
    rows: (sql) => tenant.rows(sql),
  })
}

const guarded = [
  'authors',
  'profiles',
  'books',
  'shelves',
  'book_shelves',
  'editions',
  'sales',
  'lines',
  '"odd names"',
  'events',
  'events_a',
  'drafts',
  'addresses',
  'changed',
  'coded',
]

const tables = `
create type genre as enum ('novel', 'poetry', 'science');
create domain regproc as text;
create type size as (width numeric, height numeric);
create table authors (
  id integer generated by default as identity primary key, name text not null, born date,
  mentor_id integer references authors, prefs jsonb);
create table profiles (author_id integer primary key references authors on delete cascade, bio text not null);
create table books (
  id bigint primary key, title text not null, author_id integer references authors,
  editor_id integer references authors, isbn text unique, genre genre, price numeric,
  pages integer not null default 100 check (pages > 0), available boolean default true,
  tags text[], years int4range, size size, extra jsonb,
  added timestamptz not null default '2026-01-01T00:00:00Z',
  words tsvector generated always as (to_tsvector('english', title)) stored, gross numeric generated always as (price * 2) stored);
create table shelves (id integer primary key, label text not null unique, hall text);
create table book_shelves (
  book_id bigint references books on delete cascade, shelf_id integer references shelves on delete cascade,
  primary key (book_id, shelf_id));
create table editions (book_id bigint references books on delete cascade, number integer, format text, primary key (book_id, number));
create table sales (
  id bigint generated always as identity primary key, book_id bigint not null, number integer not null,
  amount numeric not null, sold_on date not null,
  foreign key (book_id, number) references editions on delete cascade);
create table lines (entry text, at integer);
create table "odd names" (
  "a,b" integer primary key, "c.d" text, "e""f" text, "g h" text, "(i)" text, "j:k" text, is_new text, "select" text);
create table events (id integer not null, kind text not null, at date not null, primary key (kind, id)) partition by list (kind);
create table events_a partition of events for values in ('a');
create table events_b partition of events for values in ('b');
create domain mail as text check (value like '%@%');
create table addresses (id integer primary key, mail mail);
create domain short as integer;
create table coded (id short primary key, code mail);
create table changed (id integer primary key, of integer references changed);
create table drafts (id integer primary key, owner text default nullif(current_setting('app.user_id', true), ''), text text);
${guarded.map((table) => `alter table ${table} enable row level security;`).join('\n')}
${guarded
  .filter((table) => table !== 'drafts')
  .map((table) => `create policy allow_all on ${table} using (true) with check (true);`)
  .join('\n')}
create policy own on drafts using (
  owner = nullif(current_setting('app.user_id', true), '') or current_setting('app.role', true) = 'service_role');
create table unprotected (id integer primary key);
create view author_list with (security_invoker) as select id as number, name from authors;
create view book_list with (security_invoker) as
  select b.id as book, b.title, b.author_id as author, a.name, length(b.title) as letters from books b join authors a on a.id = b.author_id;
create view cheap_books with (security_invoker) as select id, title, price, author_id from books where price < 10 with check option;
`

const routines = `
create function add(a integer, b integer default 1) returns integer immutable language sql as 'select a + b';
create function lengths() returns setof integer stable language sql as 'select length(title) from books order by id';
create function first_book() returns books stable language sql as 'select * from books order by id limit 1';
create function no_book() returns books stable language sql as 'select * from books where false';
create function books_of(author integer) returns setof books stable language sql
  as 'select * from books where author_id = author order by id';
create function totals() returns table (book_id bigint, total numeric) stable language sql
  as 'select s.book_id, sum(amount) from sales s group by 1 order by 1';
create function titles() returns table (title text) stable language sql as 'select b.title from books b order by b.id';
create function pair(n integer, out a integer, out b text) stable language sql as $$ select n, 'n' || n $$;
create function single(out response integer) stable language sql as 'select 42';
create function touch() returns void volatile language sql as $$ insert into lines (entry) values ('touched') $$;
create function join_all(variadic parts text[]) returns text immutable language sql as $$ select array_to_string(parts, '+') $$;
create function area(side numeric) returns numeric immutable language sql as 'select side * side';
create function area(width numeric, height numeric) returns numeric immutable language sql as 'select width * height';
create function twice(n integer) returns integer immutable language sql as 'select 2 * n';
create function twice(n text) returns text immutable language sql as 'select n || n';
create function whole(json) returns json immutable language sql as 'select $1';
create function add_shelf(id integer, label text) returns setof shelves volatile language sql
  as 'insert into shelves (id, label) values (id, label) returning *';
create function echo_numeric(v numeric) returns numeric immutable language sql as 'select v';
create function echo_bigint(v bigint) returns bigint immutable language sql as 'select v';
create function echo_json(v jsonb) returns jsonb immutable language sql as 'select v';
create function echo_texts(v text[]) returns text[] immutable language sql as 'select v';
create function echo_size(v size) returns size immutable language sql as 'select v';
create function untyped() returns record stable language sql as 'select 1 as one, 2 as two';
create function untyped_set() returns setof record stable language sql as 'select n as one from generate_series(1, 2) n';
create function near(a integer) returns text immutable language sql as $$ select 'one' $$;
create function near(a integer, b integer default 2) returns text immutable language sql as $$ select 'two' $$;
create function far(a integer) returns text immutable language sql as $$ select 'one' $$;
create function far(a integer, variadic b integer[]) returns text immutable language sql as $$ select 'many' $$;
create function reject_line() returns trigger language plpgsql as $$ begin raise exception 'not this one'; end $$;
create trigger reject before insert on lines for each row when (new.entry = 'forbidden') execute function reject_line();
create function fail(code text, what text) returns void volatile language plpgsql as $$
begin raise exception using errcode = code, message = what, detail = 'a detail', hint = 'a hint'; end $$;
create function broken() returns integer stable language plpgsql as $$ begin return (select nothing from nowhere); end $$;
create function caller() returns text stable language sql as $$ select current_setting('request.jwt.claims', true)::json->>'sub' $$;
create function secret() returns integer stable security definer language sql as 'select 1';
create function upper_title(books) returns text stable language sql as 'select upper($1.title)';
create function shout(book books) returns text language sql as $$ select upper(book.title) || '!' $$;
create function log_line(shelves) returns integer language sql as $$ insert into lines (entry) values ('read') returning 1 $$;
create function short_json(short) returns json immutable language sql as $$ select to_json('#' || to_hex($1::integer)) $$;
create function short(text) returns short immutable language sql
  as $$ select ('x' || lpad(substr($1, 2), 8, '0'))::bit(32)::integer::short $$;
create function short(json) returns short immutable language sql as $$ select short($1 #>> '{}') $$;
create function secret_title(books) returns text stable security definer language sql as 'select $1.title';
create function secret_mail(mail) returns json immutable security definer language sql as $$ select '"secret"'::json $$;
create cast (mail as json) with function secret_mail(mail) as implicit;
create cast (short as json) with function short_json(short) as implicit;
create cast (text as short) with function short(text) as implicit;
create cast (json as short) with function short(json) as implicit;
create function xmin(shelves) returns text stable language sql as $$ select 'hidden' $$;
create function latest_book(authors) returns setof books rows 1 stable language sql
  as 'select * from books where author_id = $1.id order by id desc';
create function works(authors) returns setof books stable language sql as 'select * from books where author_id = $1.id';
create function secret_works(authors) returns setof books stable security definer language sql as 'select * from books';
`

const content = `
insert into authors (id, name, born, mentor_id, prefs) values
  (1, 'Ada', '1815-12-10', null, '{"lang": "en", "list": [1, 2, 3], "deep": {"a": {"b": true}}}'),
  (2, 'Ben', '1900-01-01', 1, '{"lang": "de", "list": [], "n": 10}'),
  (3, 'Cyd', null, 1, null);
select setval(pg_get_serial_sequence('authors', 'id'), 100);
insert into profiles values (1, 'first'), (2, 'second');
insert into books (id, title, author_id, editor_id, isbn, genre, price, pages, available, tags, years, size, extra) values
  (1, 'The quick fox', 1, 2, 'i-1', 'novel', 9.99, 120, true, '{red,"with, comma"}', '[1990,2000)', '(10,20)', '{"a": 1, "b": {"c": "x"}}'),
  (2, 'Lazy dogs', 1, 3, 'i-2', 'poetry', 20, 80, false, '{}', '[2000,2010)', null, '{"a": 2, "b": [1, 2]}'),
  (3, 'Foxes and dogs', 2, 1, null, 'science', 5.5, 300, null, '{red,blue}', null, '(1.5,2)', null),
  (9007199254740993, 'Big', null, null, 'i-4', null, 12345678901234567890.12345, 1, true, null, 'empty', null, '{"big": 9007199254740993}');
insert into shelves values (1, 'low', 'east'), (2, 'high', 'west'), (3, 'empty', null);
insert into book_shelves values (1, 1), (1, 2), (2, 2), (3, 1);
insert into editions values (1, 1, 'paper'), (1, 2, 'audio'), (2, 1, 'paper');
insert into sales (book_id, number, amount, sold_on) values
  (1, 1, 10, '2026-01-01'), (1, 1, 5.5, '2026-01-02'), (1, 2, 7, '2026-01-02'), (2, 1, 20, '2026-01-03');
insert into "odd names" values (1, 'dot', 'quote', 'space', 'paren', 'colon', 'new', 'sel');
insert into events values (1, 'a', '2026-01-01'), (2, 'b', '2026-01-02');
insert into changed values (1, null);
insert into addresses values (1, 'a@b');
insert into coded values (255, 'a@b'), (16, 'c@d');
insert into drafts values (1, 'ada', 'mine'), (2, 'ben', 'his');
`
