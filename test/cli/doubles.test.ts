// Commands against servers that are doubles: hostile names, keys and outputs, and connections that end too early.
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createServer as createTcpServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Tenant } from '@tenantry/client'
import t from 'tap'
import { stepFor } from '#cli/apply/difference.ts'
import { listen } from '#test/support/listen.ts'
import { cliOf, jsonLines } from './support/run-cli.ts'

const invocation = { 'x-invocation-id': 'i-1' }
const stream = { 'content-type': 'text/event-stream' }
const line = 'data: {"timestamp":"t","level":"info","message":"hello"}\n\n'

/** The responses of the double by path: status, headers and body. */
const responses: Record<string, readonly [status: number, headers: Record<string, string>, body: string]> = {
  '/v1/plans': [
    200,
    { 'content-type': 'application/json' },
    '{"plans":[{"id":"Gold","isolation":"cluster-per-tenant"}]}',
  ],
  '/functions/v1/invoke/teapot': [418, invocation, 'short and stout'],
  '/functions/v1/invoke/moved': [302, { ...invocation, location: 'http://127.0.0.1:1/' }, ''],
  '/functions/v1/invoke/red': [200, invocation, '\u001b[31mred\n'],
  '/functions/v1/stopped/logs': [200, stream, `${line}event: end\ndata: {"message":"The function is gone."}\n\n`],
  '/functions/v1/cut/logs': [200, stream, line],
  '/storage/v1/object/pictures/site/a.txt': [200, {}, '{}'],
}
const requested: string[] = []
const server = createServer((request, response) => {
  const path = request.url?.split('?')[0] ?? ''
  requested.push(path)
  const [status, headers, body] = responses[path] ?? [404, {}, '{"code":"NO_SUCH_FUNCTION","message":"None."}']
  request.resume()
  response.writeHead(status, headers).end(body)
})
const url = `http://127.0.0.1:${await listen(t, server)}`
const directory = await mkdtemp(join(tmpdir(), 'tenantry-cli-'))
t.teardown(() => rm(directory, { recursive: true, force: true }))
const env = { XDG_CONFIG_HOME: directory, TENANTRY_TENANT_URL: url, TENANTRY_SECRET_KEY: 'tn_secret_a' }
const cli = cliOf({ env, directory })

t.test('The response of a function is printed whatever its status is', async (t) => {
  t.match(await cli(['functions', 'invoke', 'teapot']), {
    code: 8,
    stdout: 'short and stout\n',
    stderr: /responded with 418/,
  })
  const asJson = await cli(['functions', 'invoke', 'teapot', '--json'])
  t.same(jsonLines(asJson), [{ status: 418, invocation_id: 'i-1', body: 'short and stout' }])
  t.match(await cli(['functions', 'invoke', 'moved', '--json']), { code: 0, stdout: /"status":302/ })
  t.match(await cli(['functions', 'invoke', 'none']), { code: 4, stdout: '', stderr: /NO_SUCH_FUNCTION/ })
})

t.test('The response of a function cannot control a terminal, and is unchanged elsewhere', async (t) => {
  t.equal((await cli(['functions', 'invoke', 'red'], { isTerminal: true })).stdout, '\\u001b[31mred\n')
  t.equal((await cli(['functions', 'invoke', 'red'])).stdout, '\u001b[31mred\n')
})

t.test('A log that the server ends is an error', async (t) => {
  const stopped = await cli(['functions', 'logs', 'stopped', '-f'])
  t.match(stopped, { code: 7, stdout: 't info hello\n', stderr: /ended the stream: The function is gone\./ })
  t.match(await cli(['functions', 'logs', 'cut', '-f']), {
    code: 7,
    stdout: 't info hello\n',
    stderr: /ended the stream\./,
  })
})

t.test('A key with a line break is rejected without being printed', async (t) => {
  const key = 'tn_secret_a\nb'
  for (const [args, keys] of [
    [['storage', 'ls'], { TENANTRY_SECRET_KEY: key }],
    [['link', url], { TENANTRY_SECRET_KEY: key }],
    [['plans'], { TENANTRY_URL: url, TENANTRY_KEY: key }],
    [['login', '--url', url], { TENANTRY_KEY: key }],
  ] as const) {
    const ran = await cli(args, { env: keys })
    t.match(ran, { code: 2, stderr: /characters that no key has/ }, args.join(' '))
    t.notMatch(ran.stderr, 'tn_secret')
  }
})

t.test('A name cannot lead to another route', async (t) => {
  requested.length = 0
  for (const args of [
    ['functions', 'get', '..'],
    ['functions', 'delete', '..'],
    ['functions', 'invoke', '.'],
    ['functions', 'logs', '..'],
    ['storage', 'rm', 'pictures/../../bucket/pictures'],
    ['storage', 'rm', '-r', '..'],
    ['storage', 'ls', '..'],
    ['storage', 'cp', 'tenant:pictures/./x', 'x'],
  ])
    t.match(await cli(args), { code: 2, stderr: /Invalid name/ }, args.join(' '))
  t.same(requested, [])
})

t.test('Only files are uploaded, and what is skipped is reported', async (t) => {
  await promisify(execFile)('mkfifo', [join(directory, 'pipe')])
  t.match(await cli(['storage', 'cp', 'pipe', 'tenant:pictures/x']), {
    code: 2,
    stderr: /neither a file nor a directory/,
  })
  await mkdir(join(directory, 'site'))
  await writeFile(join(directory, 'site/a.txt'), 'text')
  await symlink('a.txt', join(directory, 'site/link.txt'))
  const copied = await cli(['storage', 'cp', '-r', 'site', 'tenant:pictures/site', '--json'])
  t.match(jsonLines(copied), [{ to: 'tenant:pictures/site/a.txt', bytes: 4 }], copied.stderr)
  t.match(copied.stderr, /Skipped .*link\.txt/)
})

t.test('A database that closes the connection is reported as unavailable', async (t) => {
  const postgres = createTcpServer((socket) => {
    socket.once('data', () => {
      // AuthenticationOk and ReadyForQuery; the first query ends the connection.
      socket.write(Buffer.from('5200000008000000005a0000000549', 'hex'))
      socket.once('data', () => socket.destroy())
    })
  }).listen(0, '127.0.0.1')
  await once(postgres, 'listening')
  t.teardown(() => postgres.close())
  const { port } = postgres.address() as AddressInfo
  const database = { TENANTRY_DATABASE_URL: `postgres://a:b@127.0.0.1:${port}/a?sslmode=disable` }
  t.match(await cli(['sql', 'select 1'], { env: database }), { code: 7, stderr: /Connection terminated/ })
})

t.test('With --json, a wrong command line is an error as JSON', async (t) => {
  for (const [args, message] of [
    [['tenants', 'list', '--colour'], "unknown option '--colour'"],
    [['tenants'], 'The command needs a subcommand.'],
  ] as const) {
    const ran = await cli([...args, '--json'])
    t.equal(ran.code, 2)
    t.same(JSON.parse(ran.stderr), { error: { message } })
  }
})

t.test('A suspension that the status does not show is written, and limits cannot be reset by a file', async (t) => {
  const declared = { name: 'a', plan: 'Free', region: 'local', settings: { suspended: true } }
  const of = (status: Tenant['status'], generation: number) =>
    stepFor(declared, {
      ...declared,
      status,
      generation,
      observed_generation: 1,
      rate_limit: { per_second: 1, burst: 1, source: 'plan' },
    } as unknown as Tenant).action
  t.same(
    [of('suspended', 1), of('ready', 1), of('suspended', 2), of('failed', 1)],
    ['none', 'update', 'update', 'update'],
  )
  const tenants = 'tenants: [{ name: a, plan: Pro, region: local, resources: null }]'
  t.match(await cli(['apply', '-f', '-'], { input: tenants }), {
    code: 2,
    stderr: /resources must be of the type object/,
  })
})

t.test('A completion uses the context that was typed', async (t) => {
  await mkdir(join(directory, 'tenantry'))
  const contexts = { other: { url, key: 'tnp_a' }, first: { url: 'http://127.0.0.1:1', key: 'tnp_a' } }
  await writeFile(join(directory, 'tenantry/config.json'), JSON.stringify({ contexts, current_context: 'first' }))
  for (const typed of [['--context', 'other'], ['--context=other']])
    t.equal(
      (await cli(['__complete', '--', ...typed, 'tenants', 'list', '--plan', 'G'])).stdout,
      'Gold\tcluster-per-tenant\n',
    )
  t.equal((await cli(['__complete', '--', 'tenants', 'list', '--plan', 'G'])).stdout, '')
})

t.test('Output that cannot be written is an error', async (t) => {
  const bin = new URL('../../node_modules/.bin/', import.meta.url).pathname
  const path = { ...process.env, PATH: `${bin}:${process.env.PATH ?? ''}` }
  const full = promisify(execFile)('sh', ['-c', 'tenantry completion bash > /dev/full'], { env: path })
  await t.rejects(full, { code: 1, stderr: /The output cannot be written: .*ENOSPC/ })
  const child = spawn('tenantry', ['completion', 'bash'], { env: path, stdio: ['ignore', 'pipe', 'ignore'] })
  child.stdout.destroy()
  await once(child, 'exit')
  t.equal(child.exitCode, 141)
})
