// SQL at the tenant's URL: its callers, its rights, and the bounds of its results.
import t from 'tap'
import { query } from '#test/support/postgres.ts'
import { startRuntime } from '#test/support/runtime.ts'

const runtime = await startRuntime(t)
const tenant = await runtime.addTenant()
const other = await runtime.addTenant({ name: 'other' })

interface SqlBody {
  columns: { name: string; type: string }[]
  rows: (string | null)[][]
  command: string | null
  truncated: boolean
  code?: string
  sqlstate?: string
  message?: string
  position?: number | null
}

async function run(text: string, options: Record<string, unknown> = {}, caller: string | undefined = 'service') {
  const response = await tenant.request('POST', '/sql/v1', {
    as: caller,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ query: text, ...options }),
  })
  return { status: response.status, ...(response.json() as unknown as SqlBody) }
}
const write = (text: string) => run(text, { write: true })

t.test('Only the service role may send SQL', async (t) => {
  t.same((await run('select 1', {}, 'ada')).status, 403)
  const anonymous = await tenant.request('POST', '/sql/v1', {
    headers: { 'content-type': 'application/json' },
    body: '{"query":"select 1"}',
  })
  t.same(anonymous.status, 401)
})

t.test('Values come as Postgres writes them, with the names of their types', async (t) => {
  const found = await run("select 12345678901234567890.10::numeric as n, null as nothing, '<b>' as text, true as yes")
  t.match(found, {
    status: 200,
    columns: [
      { name: 'n', type: 'numeric' },
      { name: 'nothing', type: 'text' },
      { name: 'text', type: 'text' },
      { name: 'yes', type: 'boolean' },
    ],
    rows: [['12345678901234567890.10', null, '<b>', 't']],
    command: 'SELECT 1',
    truncated: false,
  })
})

t.test('The statement has the rights of the SQL login: the owner of the home, and no other tenant', async (t) => {
  const { adminUrl } = tenant.home
  const roles = 'select session_user::text, current_user::text'
  const [same] = await query(adminUrl, roles)
  t.same((await run(roles)).rows, [Object.values(same ?? {})])
  t.match(await run('reset role'), { status: 200, command: 'RESET' })
  t.match(await run(`select * from ${other.id}.schemas`), { status: 400, sqlstate: '42501' })
  t.match(await write(`set session authorization ${other.id}`), { status: 400, sqlstate: '42501' })
  for (const role of [`${tenant.id}_system`, `${tenant.id}_ddl`, other.id])
    t.match(await write(`do $$ begin execute 'set role ${role}'; end $$`), { status: 400, sqlstate: '42501' })
  const forged = await write(
    `do $$ begin reset role; perform set_config('role', 'none', false); update published_catalog set catalog = null; end $$`,
  )
  t.same(forged.status, 400)
})

t.test('By default, a statement only reads; with "write", its change is committed', async (t) => {
  t.match(await write('create table kept (id integer primary key)'), { status: 200, command: 'CREATE TABLE' })
  for (const text of [
    'insert into kept values (1)',
    'do $$ begin set transaction read write; insert into kept values (1); end $$',
    "select set_config('transaction_read_only', 'off', true), (select count(*) from kept)",
    'do $$ begin commit; insert into kept values (1); end $$',
  ])
    t.same((await run(text)).status, 400, text)
  t.same((await run('select * from kept')).rows, [])
  t.match(await write('insert into kept select generate_series(1, 3000) returning id'), {
    status: 200,
    truncated: true,
    rows: { length: 1000 },
  })
  t.same((await run('select count(*) from kept')).rows, [['3000']], 'all rows, although fewer were returned')
  t.match(await write('insert into kept values (1)'), { status: 400, sqlstate: '23505' })
})

t.test('Several statements are rejected, and nothing of a session stays for the next statement', async (t) => {
  for (const text of ['select 1; select 2', 'commit; drop table kept', 'rollback; insert into kept values (0)'])
    t.match(await write(text), { status: 400, sqlstate: '42601' })
  t.same((await write("select set_config('search_path', 'pg_catalog', false)")).status, 200)
  t.same((await write('prepare passing as select 1')).status, 200)
  t.match(await run('execute passing'), { status: 400, sqlstate: '26000' })
  t.same((await run('select count(*) from kept')).status, 200)
  for (const text of ['commit', 'rollback', 'begin', 'listen something', 'copy kept to stdout', '', ';', '-- nothing'])
    t.ok([200, 400].includes((await write(text)).status), text)
  t.same((await write('copy kept from stdin')).status, 400)
})

t.test('Results are bounded in rows, bytes and time', async (t) => {
  const many = await run('select generate_series(1, 100000)', { max_rows: 10 })
  t.match(many, { status: 200, truncated: true, command: null, rows: { length: 10 } })
  const large = await run("select repeat('x', 900000) from generate_series(1, 10)")
  t.match(large, { status: 200, truncated: true, rows: { length: 2 } })
  t.match(await run("select repeat('x', 40000000)"), { status: 413, code: 'ANSWER_TOO_LARGE' })
  t.match(await run('select pg_sleep(60)', { timeout_seconds: 1 }), { status: 400, sqlstate: '57014' })
  t.match(await run('select 1', { max_rows: 100_000 }), { status: 400, code: 'BAD_REQUEST' })
})

t.test("Postgres' error has its position", async (t) => {
  t.match(await run('select 1\nfrom nowhere'), {
    status: 400,
    code: 'INVALID_SQL',
    sqlstate: '42P01',
    message: 'relation "nowhere" does not exist',
    position: 15,
  })
  t.same((await run('select \0')).status, 400)
})

t.test('A tenant runs two statements at the same time; a closed login is reported', async (t) => {
  const slow = [1, 2, 3].map(() => run('select pg_sleep(2)'))
  t.same(
    (await Promise.all(slow)).map(({ status }) => status).sort((one, two) => one - two),
    [200, 200, 429],
  )
  await query(runtime.postgres.url('homes'), `alter role ${tenant.id}_admin nologin`)
  t.match(await run('select 1'), { status: 403, code: 'SQL_LOGIN_CLOSED' })
  await query(runtime.postgres.url('homes'), `alter role ${tenant.id}_admin login password 'changed'`)
  t.match(await run('select 1'), { status: 403, code: 'SQL_LOGIN_CLOSED' })
})
