// The commands of operators against a real installation. The JSON of each is what the OpenAPI document describes.
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { listen } from '#test/support/listen.ts'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
import { documentedRuns, readDocument } from './support/documented-runs.ts'
import { cliOf, jsonLines } from './support/run-cli.ts'

const project = new URL('../../', import.meta.url).pathname
const directory = await mkdtemp(join(tmpdir(), 'tenantry-cli-'))
const installation = await startInstallation({
  environment: { TENANTRY_PRICES_FILE: join(project, 'examples/prices.json') },
})
t.teardown(async () => {
  await removeInstallation(installation)
  await rm(directory, { recursive: true, force: true })
})
const configFile = join(directory, 'tenantry/config.json')
const cli = cliOf({ env: { XDG_CONFIG_HOME: directory }, directory })
const documented = documentedRuns(cli, await readDocument(installation.controlUrl))

t.test('Without a context, a command reports how to log in', async (t) => {
  const ran = await cli(['tenants', 'list'])
  t.equal(ran.code, 3)
  t.match(ran.stderr, /tenantry login/)
  t.equal(ran.stdout, '')
})

t.test('A login of the local installation stores a context that only the user may read', async (t) => {
  t.equal((await cli(['login', '--local', join(directory, 'none')])).code, 2)
  const ran = await cli(['login', '--local', installation.data, '--json'])
  t.same(jsonLines(ran), [{ context: 'local', url: installation.controlUrl }], ran.stderr)
  t.equal((await stat(configFile)).mode & 0o777, 0o600)
  t.match(await readFile(configFile, 'utf8'), installation.platformKey)
  const [own] = jsonLines(await cli(['auth', 'whoami', '--json']))
  t.match(own, { context: 'local', scope: 'admin', name: 'first admin key' })
})

t.test('The environment takes precedence over the stored context, and its URL needs its own key', async (t) => {
  const url = { TENANTRY_URL: installation.controlUrl }
  t.equal((await cli(['plans'], { env: url })).code, 2)
  t.equal((await cli(['plans'], { env: { ...url, TENANTRY_KEY: 'tnp_wrong' } })).code, 3)
  t.equal((await cli(['plans', '--context', 'local'], { env: { ...url, TENANTRY_KEY: 'tnp_wrong' } })).code, 0)
  const keyFile = join(installation.data, 'secrets/platform-key')
  t.match(jsonLines(await cli(['whoami', '--json'], { env: { ...url, TENANTRY_KEY_FILE: keyFile } }))[0], {
    context: 'environment',
  })
})

t.test('Contexts are listed without keys, chosen and removed', async (t) => {
  const login = ['login', '--url', installation.controlUrl, '--key-file', '-', '--name', 'second']
  t.equal((await cli(login, { input: `${installation.platformKey}\n` })).code, 0)
  t.equal((await cli(login, { input: 'tnp_wrong' })).code, 3, 'a wrong key is not stored')
  const listed = await cli(['context', 'list', '--json'])
  t.same(
    jsonLines(listed).map(({ name, current }) => [name, current]),
    [
      ['local', false],
      ['second', true],
    ],
  )
  t.notMatch(listed.stdout, installation.platformKey)
  t.equal((await cli(['context', 'use', 'local'])).code, 0)
  t.equal((await cli(['logout', 'second'])).code, 0)
  t.equal((await cli(['context', 'use', 'second'])).code, 2)
})

t.test('A tenant is created, listed, changed, suspended and resumed', async (t) => {
  const create = ['tenants', 'create', 'acme', '--plan', 'Free', '--region', 'local']
  const [created] = await documented(t, 'POST /v1/tenants', create)
  t.match(created, { status: 'ready', operation: { state: 'succeeded' }, keys: { secret_key: /^tn_secret_/ } })
  t.match(created, { database_url: /:[^@]{20,}@/ }, 'the password is shown once')
  t.equal((await cli(create)).code, 5, 'the name is taken')
  await documented(t, 'GET /v1/tenants/{id}', ['tenants', 'get', 'acme'])
  t.equal((await documented(t, 'GET /v1/tenants', ['tenants', 'list', '--plan', 'Free'], 'tenants')).length, 1)
  const update = ['tenants', 'update', 'acme', '--backups-kept', '3', '--rate-limit', '250/1000']
  const [changed] = await documented(t, 'PATCH /v1/tenants/{id}', update)
  t.match(changed, { backups_kept: 3, rate_limit: { per_second: 250, burst: 1000, source: 'tenant' } })
  const suspend = ['tenants', 'suspend', 'acme', '--reason', 'unpaid', '--payment-required']
  const [suspended] = await documented(t, 'PATCH /v1/tenants/{id}', suspend)
  t.match(suspended, { status: 'suspended', suspend_reason: 'unpaid', payment_required: true })
  const [resumed] = await documented(t, 'PATCH /v1/tenants/{id}', ['tenants', 'resume', 'acme'])
  t.match(resumed, { status: 'ready', suspend_reason: null })
  for (const name of ['pause', 'restart'])
    t.match(await cli(['tenants', name, 'acme', '--json']), { code: 6, stderr: /"code":"NOT_DEDICATED"/ })
})

t.test('People get a table, and texts cannot control the terminal', async (t) => {
  const { stdout } = await cli(['tenants', 'list'])
  t.match(stdout, /^NAME +ID +PLAN +REGION +STATUS +CREATED\nacme +t_[0-9a-f]{20} +Free +local +ready /)
  t.match((await cli(['tenants', 'get', 'acme'])).stdout, /^conditions +Home, Database, Runtime, Route$/m)
  const limited = await cli(['audit', 'list', '--limit', '1'])
  t.equal(limited.stdout.trimEnd().split('\n').length, 2)
  t.match(limited.stderr, 'There are more than 1 rows. Use --limit or --all.')
  const all = await cli(['audit', 'list', '--all', '--json'])
  t.ok(jsonLines(all).length > 1)
  t.equal(all.stderr, '')
})

t.test('An operation is listed and followed', async (t) => {
  const operations = await documented(t, 'GET /v1/operations', ['operations', 'list', '--tenant', 'acme'], 'operations')
  const id = String(operations[0]?.id)
  t.match(await documented(t, 'GET /v1/operations/{id}', ['operations', 'follow', id]), [{ kind: 'create' }])
  t.equal((await cli(['operations', 'follow', '00000000-0000-4000-8000-000000000000'])).code, 4)
  t.equal((await cli(['operations', 'list', '--state', 'done'])).code, 2)
})

t.test('Ctrl-C leaves the operation running, shows the keys, and prints how to follow it', async (t) => {
  const interruption = new AbortController()
  const create = ['tenants', 'create', 'interrupted', '--plan', 'Free', '--region', 'local', '--json']
  const ran = await cli(create, { signal: interruption.signal, onProgress: () => interruption.abort() })
  t.equal(ran.code, 130)
  const [created] = jsonLines<{ keys: object; operation: { id: string } }>(ran)
  t.match(created?.keys, { secret_key: /^tn_secret_/ })
  const command = /tenantry (operations follow [0-9a-f-]{36})/.exec(ran.stderr)?.[1] ?? ''
  t.match(command, created?.operation.id)
  t.match(jsonLines(await cli([...command.split(' '), '--json'])), [{ state: 'succeeded' }])
})

t.test('A deletion needs the name, never waits for a person without a terminal, and can be reverted', async (t) => {
  t.match(await cli(['tenants', 'delete', 'interrupted']), { code: 2, stderr: /Use --confirm interrupted/ })
  t.equal((await cli(['tenants', 'delete', 'interrupted', '--confirm', 'acme'])).code, 2)
  const remove = ['tenants', 'delete', 'interrupted', '--confirm', 'interrupted']
  const [deleted] = await documented(t, 'DELETE /v1/tenants/{id}', remove)
  t.match(deleted, { status: 'deleting', purge_after: /^20/ })
  const [restored] = await documented(t, 'POST /v1/tenants/{id}/undelete', ['tenants', 'restore', 'interrupted'])
  t.match(restored, { status: 'ready', purge_after: null })
  const [purged] = await documented(t, 'DELETE /v1/tenants/{id}', [...remove, '--purge'])
  t.match(purged, { operation: { kind: 'delete', state: 'succeeded' } })
  t.equal((await cli(['tenants', 'get', 'interrupted'])).code, 4)
})

t.test('Health, drift, sessions and logs are shown', async (t) => {
  await documented(t, 'GET /health', ['health'])
  t.match(await documented(t, 'GET /v1/tenants/{id}/health', ['health', 'acme']), [{ status: 'healthy' }])
  t.match(await documented(t, 'GET /v1/tenants/{id}/drift', ['drift', 'acme', '--exit-code']), [{ drifted: false }])
  const list = ['sessions', 'list', 'acme', '--statements']
  const sessions = await documented(t, 'GET /v1/tenants/{id}/sessions', list, 'sessions')
  t.ok(sessions.length > 0)
  t.match(await cli(['sessions', 'end', 'acme', String(sessions[0]?.pid), '--json']), { code: 0 })
  t.match(await cli(['logs', 'acme']), { code: 6, stderr: /NOT_DEDICATED/ })
})

t.test('Usage and invoices are shown as JSON, CSV and PDF', async (t) => {
  await documented(t, 'GET /v1/tenants/{id}/usage', ['usage', 'acme'])
  await documented(t, 'GET /v1/tenants/{id}/usage', ['usage', 'acme', '--granularity', 'day'])
  await documented(t, 'GET /v1/usage', ['usage', '--month', new Date().toISOString().slice(0, 7)], 'tenants')
  t.match(await cli(['usage', 'acme', '--csv']), { code: 0, stdout: /,api_requests,count,0\r\n/ })
  t.equal((await cli(['usage', 'acme', '--month', 'May'])).code, 6)
  await documented(t, 'GET /v1/tenants/{id}/invoices', ['invoices', 'list', 'acme'], 'invoices')
  const upcoming = ['invoices', 'get', 'acme', 'upcoming']
  await documented(t, 'GET /v1/tenants/{id}/invoices/upcoming', upcoming)
  t.match(await cli([...upcoming, '--format', 'csv']), { code: 0, stdout: /Free plan/ })
  t.equal((await cli([...upcoming, '--format', 'pdf'])).code, 2)
  t.equal((await cli([...upcoming, '-o', 'upcoming.pdf'])).code, 0)
  t.match(await readFile(join(directory, 'upcoming.pdf'), 'latin1'), /^%PDF-/)
  t.match(jsonLines(await cli([...upcoming, '-o', 'next.pdf', '--json'])), [{ file: 'next.pdf', bytes: Number }])
  t.match(await readFile(join(directory, 'next.pdf'), 'latin1'), /^%PDF-/)
  t.equal((await cli(['invoices', 'close', 'acme', new Date().toISOString().slice(0, 7)])).code, 5)
  t.equal((await cli(['invoices', 'void', 'acme', '00000000-0000-4000-8000-000000000000', '--reason', 'x'])).code, 4)
})

t.test('A backup is created, verified, restored into a new tenant, and removed', async (t) => {
  const [backup] = await documented(t, 'POST /v1/tenants/{id}/backups', ['backups', 'create', 'acme'])
  const id = String(backup?.id)
  t.match(backup, { state: 'complete' })
  t.equal((await documented(t, 'GET /v1/backups', ['backups', 'list'], 'backups')).length, 1)
  await documented(t, 'GET /v1/tenants/{id}/backups', ['backups', 'list', 'acme'], 'backups')
  await documented(t, 'GET /v1/backups/{id}', ['backups', 'get', id])
  const [verified] = await documented(t, 'POST /v1/backups/{id}/verify', ['backups', 'verify', id])
  t.match(verified, { verified: /^20/, verify_error: null })
  const into = ['backups', 'restore', id, '--into', 'acme-copy']
  const [copy] = await documented(t, 'POST /v1/backups/{id}/restore', into)
  t.match(copy, { name: 'acme-copy', status: 'ready', keys: { secret_key: /^tn_secret_/ } })
  t.equal((await cli(['backups', 'restore', id])).code, 2, 'without a confirmation nothing is replaced')
  const same = ['backups', 'restore', id, '--confirm', 'acme']
  t.match(await documented(t, 'POST /v1/backups/{id}/restore', same), [{ operation: { state: 'succeeded' } }])
  t.equal((await cli(['backups', 'delete', id])).code, 2)
  await documented(t, 'DELETE /v1/backups/{id}', ['backups', 'delete', id, '--confirm', id])
})

t.test('Platform keys are created, rotated and revoked, and a key has only its scope', async (t) => {
  const create = (scope: string) => ['keys', 'create', `a ${scope} key`, '--scope', scope]
  for (const scope of ['read', 'billing']) {
    const [key] = await documented(t, 'POST /v1/keys', create(scope))
    const env = { TENANTRY_KEY: String(key?.key) }
    t.match(jsonLines(await cli(['whoami', '--json'], { env })), [{ scope }])
    t.equal((await cli(['tenants', 'resume', 'acme'], { env })).code, 3)
    const [successor] = await documented(t, 'POST /v1/keys/{id}/rotate', [
      'keys',
      'rotate',
      String(key?.id),
      '--overlap',
      '0',
    ])
    await documented(t, 'DELETE /v1/keys/{id}', ['keys', 'revoke', String(successor?.id)])
  }
  t.equal((await documented(t, 'GET /v1/keys', ['keys', 'list'], 'keys')).length, 5)
  t.equal((await cli(create('root'))).code, 2)
  const rotate = ['keys', 'rotate-tenant', 'acme', '--kind', 'publishable_key', '--overlap', '0']
  const [rotated] = await documented(t, 'POST /v1/tenants/{id}/keys/rotate', rotate)
  t.same(Object.keys(rotated?.keys ?? {}), ['publishable_key'])
  const password = ['keys', 'rotate-database-password', 'acme']
  await documented(t, 'POST /v1/tenants/{id}/database-password/rotate', password)
})

t.test('A webhook is registered, disabled and removed', async (t) => {
  const port = await listen(
    t,
    createServer((_request, response) => response.end()),
  )
  const register = [
    'webhooks',
    'create',
    `http://127.0.0.1:${port}/`,
    '--type',
    'tenant.ready',
    '--description',
    'a test',
  ]
  const [webhook] = await documented(t, 'POST /v1/webhooks', register)
  const id = String(webhook?.id)
  await documented(t, 'GET /v1/webhooks', ['webhooks', 'list'], 'webhooks')
  await documented(t, 'PATCH /v1/webhooks/{id}', ['webhooks', 'disable', id])
  await documented(t, 'PATCH /v1/webhooks/{id}', ['webhooks', 'enable', id])
  await documented(t, 'GET /v1/webhooks/{id}/deliveries', ['webhooks', 'deliveries', id], 'deliveries')
  await documented(t, 'POST /v1/webhooks/{id}/replay', ['webhooks', 'replay', id])
  t.same(jsonLines(await cli(['webhooks', 'delete', id, '--json'])), [{ deleted: id }])
  t.equal((await cli(['webhooks', 'create', 'nowhere'])).code, 6)
})

t.test('Regions, hosts, plans, rollouts and the audit log are listed', async (t) => {
  t.match(await documented(t, 'GET /v1/regions', ['regions'], 'regions'), [{ id: 'local' }])
  t.equal((await documented(t, 'GET /v1/plans', ['plans'], 'plans')).length, 3)
  const machine = { id: 'local', engine: 'process', state: 'reachable', memory_bytes: { total: totalmem() } }
  t.match(await documented(t, 'GET /v1/hosts', ['hosts'], 'hosts'), [machine])
  t.match(await documented(t, 'GET /v1/hosts', ['hosts', 'list'], 'hosts'), [machine])
  const [host] = await documented(t, 'GET /v1/hosts/{id}', ['hosts', 'get', 'local'])
  const { free } = (host?.['memory_bytes'] ?? { free: -1 }) as { free: number }
  t.ok(free > 0 && free < totalmem(), String(free))
  t.match((await cli(['hosts'])).stdout, /^ID .*CPU FREE .*\nlocal .* cores of .* GB of .* s ago\n$/)
  t.match((await cli(['hosts', 'get', 'local'])).stdout, /^memory reserved +0\.00 GB by tenants, /m)
  t.equal((await cli(['hosts', 'get', 'moon'])).code, 4)
  await documented(t, 'GET /v1/rollouts', ['rollouts', 'list', '--region', 'local'], 'rollouts')
  t.equal((await cli(['rollouts', 'get', '00000000-0000-4000-8000-000000000000'])).code, 4)
  const entries = await documented(t, 'GET /v1/audit', ['audit', 'list', '--limit', '5'], 'entries')
  t.equal(entries.length, 5)
  t.match(await documented(t, 'GET /v1/audit/verify', ['audit', 'verify']), [{ whole: true }])
})

t.test('Shared databases are listed, limited and rebalanced', async (t) => {
  const path = 'GET /v1/regions/{id}/databases'
  t.match(await documented(t, path, ['databases', 'list', 'local'], 'databases'), [{ name: 'tenantry_homes_1' }])
  const limit = ['databases', 'limit', 'local', 'tenantry_homes_1']
  t.equal((await cli(limit)).code, 2)
  t.equal((await cli([...limit, '--max-homes', '0'])).code, 2)
  const change = 'PATCH /v1/regions/{id}/databases/{database}'
  t.match(await documented(t, change, [...limit, '--max-bytes', '1000']), [{ max_bytes: 1000 }])
  t.equal((await cli(['databases', 'limit', 'local', 'nowhere', '--max-homes', '1'])).code, 4)
  t.ok((await documented(t, 'POST /v1/regions/{id}/rebalance', ['rebalances', 'plan', 'local'], 'moves')).length > 0)
  t.match(await documented(t, change, [...limit, '--max-bytes', 'unlimited', '--max-homes', '1000']), [
    { max_bytes: null },
  ])
  t.match(await cli(['rebalances', 'plan', 'local']), { code: 0, stderr: 'No database exceeds a limit.\n' })
  const started = await cli(['rebalances', 'start', 'local', '--json'])
  const [rebalance] = jsonLines(started)
  t.match(rebalance, { state: 'done', moves: [] })
  t.match(started.stderr, 'tenantry rebalances get local')
  const id = String(rebalance?.['id'])
  const one = '/v1/regions/{id}/rebalances/{rebalance}'
  await documented(t, 'GET /v1/regions/{id}/rebalances', ['rebalances', 'list', 'local'], 'rebalances')
  t.match(await documented(t, `GET ${one}`, ['rebalances', 'get', 'local', id]), [{ id }])
  t.equal((await cli(['rebalances', 'cancel', 'local', id])).code, 5)
})

t.test('`api` reaches every route, and sends the key to no other host', async (t) => {
  const [attention] = jsonLines(await cli(['api', 'GET', '/v1/fleet/attention', '--json']))
  t.match(attention, { tenants: Array, next_cursor: null })
  const block = ['api', 'put', '/v1/blocked-addresses/192.0.2.7', '--data', '{"reason":"a test"}']
  t.match(jsonLines(await cli([...block, '--json'])), [{ address: '192.0.2.7', reason: 'a test' }])
  t.match(await cli(['api', 'DELETE', '/v1/blocked-addresses/192.0.2.7']), { code: 0, stdout: '' })
  t.match(await cli(['api', 'GET', '/v1/tenants/none', '--json']), { code: 4, stderr: /TENANT_NOT_FOUND/ })
  const create = ['api', 'POST', '/v1/keys', '--data', '-', '--json']
  t.match(await cli(create, { input: '{"name":"x","scope":"root"}' }), { code: 6, stderr: /INVALID_FIELD/ })
  t.match(await cli(['api', 'POST', '/v1/keys', '--data', '{']), { code: 2, stderr: /not valid JSON/ })
  t.equal((await cli(['api', 'TRACE', '/v1/tenants'])).code, 2)
  let requests = 0
  const port = await listen(
    t,
    createServer((_request, response) => response.end(String(requests++))),
  )
  for (const path of [`//127.0.0.1:${port}/`, `http://127.0.0.1:${port}/`, `/\\127.0.0.1:${port}/`, 'v1/tenants', ''])
    t.equal((await cli(['api', 'GET', path])).code, 2, path)
  t.equal(requests, 0)
})

t.test('A move to no database, a revert of none, and a cancellation of what has ended, are rejected', async (t) => {
  t.match(await cli(['tenants', 'move-revert', 'acme', '--json']), { code: 5, stderr: /NO_MOVE_TO_REVERT/ })
  t.match(await cli(['tenants', 'move', 'acme', 'nowhere', '--json']), { code: 6, stderr: /UNKNOWN_DATABASE/ })
  const [last] = jsonLines(await cli(['operations', 'list', '--tenant', 'acme', '--limit', '1', '--json']))
  t.match(await cli(['operations', 'cancel', String(last?.['id']), '--json']), { code: 5, stderr: /NOT_CANCELABLE/ })
})

t.test('`auth login`, `auth logout` and `context remove` manage contexts, too', async (t) => {
  for (const remove of [
    ['auth', 'logout', 'third'],
    ['context', 'remove', 'third'],
  ]) {
    const login = ['auth', 'login', '--url', installation.controlUrl, '--key-file', '-', '--name', 'third']
    t.equal((await cli(login, { input: installation.platformKey })).code, 0)
    t.equal((await cli(['context', 'use', 'local'])).code, 0)
    t.equal((await cli(remove)).code, 0, remove.join(' '))
    t.notMatch((await cli(['context', 'list'])).stdout, /third/)
  }
})

t.test('`doctor` checks the installation, and reports what to do about one that does not respond', async (t) => {
  const healthy = await cli(['doctor', '--json'])
  t.equal(healthy.code, 0, healthy.stderr)
  t.same([...new Set(jsonLines(healthy).map(({ status }) => status))], ['ok'])
  const env = { TENANTRY_URL: 'http://127.0.0.1:1', TENANTRY_KEY: 'tnp_none' }
  const ran = await cli(['doctor', '--json'], { env })
  t.equal(ran.code, 8)
  t.match(jsonLines(ran).at(-1), { check: 'connection', status: 'failed', advice: /whether the control plane runs/ })
  t.equal((await cli(['plans'], { env })).code, 7)
})

t.test('`apply` shows differences, creates and changes tenants, and then changes nothing', async (t) => {
  const file = join(directory, 'tenants.yaml')
  const declare = (text: string) => writeFile(file, text)
  await declare(
    'tenants:\n' +
      '  - { name: acme, plan: Free, region: local, backups_kept: 5, rate_limit: null }\n' +
      '  - { name: globex, plan: Pro, region: local, suspended: true }\n',
  )
  const dry = await cli(['apply', '-f', file, '--dry-run', '--exit-code', '--json'])
  t.equal(dry.code, 9)
  t.match(jsonLines(dry), [
    {
      tenant: 'acme',
      action: 'update',
      changes: [
        { field: 'backups_kept', from: 3, to: 5 },
        { field: 'rate_limit', from: { per_second: 250, burst: 1000 }, to: null },
      ],
    },
    { tenant: 'globex', tenant_id: null, action: 'create' },
  ])
  t.equal((await cli(['tenants', 'get', 'globex'])).code, 4, 'a dry run creates nothing')
  const applied = await cli(['apply', '-f', file, '--json'])
  t.equal(applied.code, 0, applied.stderr)
  t.match(jsonLines(applied)[1], { action: 'create', keys: { secret_key: /^tn_secret_/ } })
  t.match(jsonLines(await cli(['tenants', 'get', 'globex', '--json'])), [{ plan: 'Pro', status: 'suspended' }])
  const again = await cli(['apply', '-f', file, '--dry-run', '--exit-code'])
  t.match(again, { code: 0, stdout: '= acme\n= globex\n' })
  await declare('tenants:\n  - { name: acme, plan: Free, region: moon }\n')
  t.match(await cli(['apply', '-f', file]), { code: 5, stdout: /region is local/ })
  await declare('tenants:\n  - { name: acme, plan: Free, region: local, backup_kept: 5 }\n')
  t.match(await cli(['apply', '-f', file]), { code: 2, stderr: /tenants\[0\] has the unknown field "backup_kept"/ })
  t.equal((await cli(['apply', '-f', '-'], { input: 'tenants: []' })).code, 0)
})

t.test('A wrong command line exits with 2, and help with 0', async (t) => {
  for (const args of [['tenants'], ['tenant'], ['tenants', 'list', '--colour'], ['tenants', 'create', 'x']])
    t.equal((await cli(args)).code, 2, args.join(' '))
  t.match(await cli(['tenants', '--help']), { code: 0, stdout: /create, list, change and delete tenants/ })
})
