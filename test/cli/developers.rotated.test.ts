// The commands of a tenant's developers, against the tenant of a real installation.
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import t from 'tap'
import { compileFunction } from '#examples/functions/compile.ts'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
import { cliOf, jsonLines } from './support/run-cli.ts'

const project = new URL('../../', import.meta.url).pathname
const directory = await mkdtemp(join(tmpdir(), 'tenantry-cli-'))
const installation = await startInstallation()
t.teardown(async () => {
  await removeInstallation(installation)
  await rm(directory, { recursive: true, force: true })
})
const cli = cliOf({ env: { XDG_CONFIG_HOME: directory }, directory })
const good = async (...args: string[]) => {
  const ran = await cli(args)
  if (ran.code !== 0) throw new Error(`tenantry ${args.join(' ')} exits with ${ran.code}: ${ran.stderr}`)
  return ran
}
await good('login', '--local', installation.data)
interface Created {
  path_url: string
  database_url: string
  keys: { secret_key: string }
}
const create = ['tenants', 'create', 'acme', '--plan', 'Free', '--region', 'local', '--json']
const [tenant] = jsonLines<Created>(await good(...create))
if (tenant === undefined) throw new Error('The tenant was not created.')

t.test('A tenant is linked with a key from standard input, and a wrong key is rejected', async (t) => {
  t.match(await cli(['schemas', 'pull']), { code: 3, stderr: /tenantry link/ })
  t.equal((await cli(['link', tenant.path_url])).code, 2, 'there is no terminal to type the key at')
  t.equal((await cli(['link', tenant.path_url, '--key-file', '-'], { input: 'tn_secret_wrong' })).code, 3)
  await writeFile(join(directory, 'database-url'), tenant.database_url)
  const link = ['link', tenant.path_url, '--key-file', '-', '--database-url-file', 'database-url', '--json']
  const linked = await cli(link, { input: `${tenant.keys.secret_key}\n` })
  t.same(jsonLines(linked), [{ link: 'acme', url: tenant.path_url }], linked.stderr)
  t.equal((await stat(join(directory, 'tenantry/config.json'))).mode & 0o777, 0o600)
  t.match(jsonLines(await good('link', '--json')), [{ link: 'acme', has_database_url: true }])
})

t.test('Schemas with their policies are pushed, compared and pulled', async (t) => {
  const notes = {
    name: 'notes',
    fields: [
      { name: 'id', type: 'uuid', primary: true },
      { name: 'owner_id', type: 'string' },
      { name: 'text', type: 'string', required: true },
      { name: 'rank', type: 'number' },
    ],
    rls_policy: { type: 'ownership', owner_field: 'owner_id' },
    events: false,
  }
  const write = (schemas: object[]) => writeFile(join(directory, 'schemas.json'), JSON.stringify(schemas))
  await write([notes])
  t.match(jsonLines(await cli(['schemas', 'diff', '--json'])), [{ schema: 'notes', action: 'create' }])
  t.match(jsonLines(await good('schemas', 'push', '--json')), [{ success: true, collections: ['notes'] }])
  t.match(await cli(['schemas', 'diff', '--exit-code']), { code: 0, stdout: '' })
  t.same(JSON.parse((await good('schemas', 'pull', '-')).stdout), [notes])

  await write([{ ...notes, fields: notes.fields.slice(0, 3), rls_policy: { type: 'authenticated' } }])
  const diff = await cli(['schemas', 'diff', '--exit-code', '--json'])
  t.equal(diff.code, 9)
  t.match(jsonLines(diff), [{ action: 'update', members: ['fields', 'rls_policy'] }])
  const lossy = await cli(['schemas', 'push'])
  t.equal(lossy.code, 5, 'a change that loses data needs a confirmation')
  const change = /--confirm '([^']+)'/.exec(lossy.stderr)?.[1] ?? ''
  t.match(jsonLines(await good('schemas', 'push', '--confirm', change, '--json')), [{ success: true }])
  await write([{ name: 'notes', colour: 'red' }])
  t.match(await cli(['schemas', 'push']), { code: 2, stderr: /unknown member "colour"/ })
  await good('schemas', 'pull', '--json')
  t.equal((JSON.parse(await readFile(join(directory, 'schemas.json'), 'utf8')) as object[]).length, 1)
})

t.test('The types of the tables are accepted by supabase-js', { timeout: 120_000 }, async (t) => {
  const folder = await mkdtemp(join(project, 'node_modules/.cache/cli-types-'))
  t.teardown(() => rm(folder, { recursive: true, force: true }))
  t.match(await good('types', '--json'), { stdout: /"types":"export type Json/ })
  await good('types', '-o', join(folder, 'database.ts'))
  await writeFile(
    join(folder, 'app.ts'),
    "import { createClient } from '@supabase/supabase-js'\n" +
      "import type { Database } from './database.ts'\n" +
      "const client = createClient<Database>('http://127.0.0.1', 'key')\n" +
      "const { data } = await client.from('notes').select('id, text').single()\n" +
      'export const text: string | undefined = data?.text\n' +
      "await client.from('notes').insert({ text: 'a' })\n" +
      '// @ts-expect-error The required field is missing.\n' +
      "await client.from('notes').insert({ owner_id: 'ada' })\n" +
      '// @ts-expect-error There is no such table.\n' +
      "await client.from('nothing').select()\n",
  )
  await writeFile(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ extends: join(project, 'tsconfig.json'), include: ['*.ts'], exclude: [] }),
  )
  const compiler = join(project, 'node_modules/typescript-native/bin/tsc')
  const compiled = await promisify(execFile)(process.execPath, [compiler, '--noEmit', '-p', folder]).catch(
    (error: unknown) => error as { stdout: string },
  )
  t.equal(compiled.stdout, '')
})

t.test('A function is deployed, invoked, replaced and deleted, and its log is shown', async (t) => {
  await writeFile(join(directory, 'greet.wasm'), await compileFunction('greet'))
  t.equal((await cli(['functions', 'deploy', 'greet', 'missing.wasm'])).code, 2)
  t.match(jsonLines(await good('functions', 'deploy', 'greet', 'greet.wasm', '--json')), [{ name: 'greet' }])
  const invoked = await cli(['functions', 'invoke', 'greet', '--data', '{"name":"Ada"}', '--json'])
  t.match(jsonLines(invoked), [{ status: 200, body: { greeting: 'Hello, Ada!' } }], invoked.stderr)
  t.match(await cli(['functions', 'invoke', 'greet', '--data', '-'], { input: '{"name":"Ben"}' }), {
    code: 0,
    stdout: /"greeting":"Hello, Ben!".*\n$/,
  })
  const replaced = await good('functions', 'deploy', 'greet', 'greet.wasm', '--config', '{"timeout":5}', '--json')
  t.match(jsonLines(replaced), [{ name: 'greet', config: { timeout: 5 } }])
  t.match(jsonLines(await good('functions', 'list', '--json')), [{ name: 'greet' }])
  t.match(jsonLines(await good('functions', 'get', 'greet', '--json')), [{ invocation_count: 2 }])
  t.equal((await cli(['functions', 'logs', 'greet', '--json'])).code, 0)
  const interruption = new AbortController()
  const followed = await cli(['functions', 'logs', 'greet', '-f'], {
    signal: interruption.signal,
    onProgress: () => interruption.abort(),
  })
  t.equal(followed.code, 130)
  t.same(jsonLines(await good('functions', 'delete', 'greet', '--json')), [{ deleted: 'greet' }])
  t.match(await cli(['functions', 'invoke', 'greet', '--json']), { code: 4, stderr: /NO_SUCH_FUNCTION/ })
})

t.test('Files are copied to a bucket and back, listed and removed', async (t) => {
  const response = await fetch(`${tenant.path_url}/storage/v1/bucket`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tenant.keys.secret_key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'pictures', policy: 'private' }),
  })
  t.equal(response.status, 201, await response.text())
  const picture = join(project, 'examples/lighthouse.png')
  const copied = await good('storage', 'cp', picture, 'tenant:pictures/coast/', '--json')
  t.match(jsonLines(copied), [{ to: 'tenant:pictures/coast/lighthouse.png', bytes: 25_473 }])
  await mkdir(join(directory, 'site/a b'), { recursive: true })
  await writeFile(join(directory, 'site/index.html'), '<p>hello')
  await writeFile(join(directory, 'site/a b/ü?.txt'), 'text')
  t.equal((await cli(['storage', 'cp', 'site', 'tenant:pictures/site'])).code, 2, 'a directory needs --recursive')
  t.equal(jsonLines(await good('storage', 'cp', '-r', 'site', 'tenant:pictures/site', '--json')).length, 2)
  t.match(jsonLines(await good('storage', 'ls', '--json')), [{ name: 'pictures', file_count: 3 }, { name: 'system' }])
  t.same(
    jsonLines(await good('storage', 'ls', 'pictures', '--json')).map(({ name }) => name),
    ['coast/', 'site/'],
  )
  t.match(jsonLines(await good('files', 'ls', 'tenant:pictures/coast', '--json')), [
    { name: 'coast/lighthouse.png', bytes: 25_473 },
  ])
  await good('storage', 'cp', '-r', 'tenant:pictures/site', 'copy')
  t.equal(await readFile(join(directory, 'copy/a b/ü?.txt'), 'utf8'), 'text')
  await good('storage', 'cp', 'tenant:pictures/coast/lighthouse.png', 'back.png')
  t.same(await readFile(join(directory, 'back.png')), await readFile(picture))
  t.equal((await cli(['storage', 'cp', 'tenant:pictures/nothing', 'x'])).code, 4)
  t.equal((await cli(['storage', 'cp', 'a', 'b'])).code, 2)
  t.equal((await cli(['storage', 'rm', 'pictures'])).code, 2)
  t.equal((await good('storage', 'rm', 'tenant:pictures/coast/lighthouse.png', '--json')).code, 0)
  t.match(jsonLines(await good('storage', 'rm', '-r', 'pictures/site', '--json')), [{ removed: 2 }])
})

t.test('SQL runs as the admin role of the tenant, and only reads unless it may write', async (t) => {
  const role = jsonLines(await good('sql', 'select session_user as role, 1.10 as price', '--json'))
  t.match(role, [{ role: /^t_[0-9a-f]{20}_admin$/, price: '1.10' }])
  const repeated = 'select 1 as b, 2 as "1", 3 as b, 4 as b_2, 5 as b'
  t.equal((await good('sql', repeated)).stdout, 'b  1  b  b_2  b\n1  2  3  4    5\n')
  t.same(jsonLines(await good('sql', repeated, '--json')), [{ b: '1', 1: '2', b_3: '3', b_2: '4', b_4: '5' }])
  const create = "create table lamps (name text); insert into lamps values (E'\\u001b[31mred')"
  t.match(await cli(['sql', create]), { code: 6, stderr: /read-only.*--write/ })
  t.match(await cli(['sql', `commit; ${create}`]), { code: 6, stderr: /read-only/ }, 'a commit does not change that')
  t.match(jsonLines(await good('sql', '--write', create, '--json')), [{ command: 'CREATE' }, { row_count: 1 }])
  t.match(await cli(['sql', '--file', '-'], { input: 'select * from lamps' }), {
    code: 0,
    stdout: 'name\n\\u001b[31mred\n',
  })
  t.match(await cli(['sql', 'select pg_sleep(30)', '--timeout', '1']), { code: 6, stderr: /57014/ })
  t.equal((await cli(['sql'])).code, 2)
  const wrong = { TENANTRY_DATABASE_URL: tenant.database_url.replace(/:[^:@]+@/, ':wrong@') }
  t.equal((await cli(['sql', 'select 1'], { env: wrong })).code, 3)
})

t.test('A link is removed with its keys', async (t) => {
  t.same(jsonLines(await good('unlink', 'acme', '--json')), [{ removed: 'acme' }])
  t.notMatch(await readFile(join(directory, 'tenantry/config.json'), 'utf8'), tenant.keys.secret_key)
  const env = { TENANTRY_TENANT_URL: tenant.path_url, TENANTRY_SECRET_KEY: tenant.keys.secret_key }
  t.equal((await cli(['storage', 'ls'], { env })).code, 0, 'the environment names a tenant too')
})
