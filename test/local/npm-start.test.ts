// `npm start` with the settings of its environment, and with a tenant that makes Postgres log as much as it can.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { chmod, mkdtemp, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as pause } from 'node:timers/promises'
import pg from 'pg'
import t, { type Test } from 'tap'
import { removeInstallation, startInstallation, type Installation } from '#test/support/installation.ts'
import { until } from '#test/support/until.ts'

const project = new URL('../../', import.meta.url).pathname
const main = join(project, 'local/src/main.ts')

interface Tenant {
  tenant_id: string
  path_url: string
  database_url: string
  keys: { secret_key: string }
}

async function call(installation: Installation, method: string, path: string, body?: object): Promise<Response> {
  return fetch(`${installation.controlUrl}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${installation.platformKey}`,
      'content-type': 'application/json',
      prefer: 'wait=30',
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
}

/** Returns the environment that a service was started with. */
async function environmentOf(installation: Installation, service: string): Promise<Record<string, string>> {
  const environment = await readFile(`/proc/${await installation.pid(service)}/environ`, 'utf8')
  return Object.fromEntries(
    environment
      .split('\0')
      .filter((entry) => entry !== '')
      .map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]),
  )
}

/** Kills a service and waits until another process runs in its place. */
async function checkRestarts(t: Test, installation: Installation, service: string, when: string): Promise<void> {
  const before = await installation.pid(service)
  process.kill(before, 'SIGKILL')
  for (;;) {
    const now = await installation.pid(service)
    if (now !== before) break
    await pause(20)
  }
  t.pass(`${when}: ${service} runs again`)
}

async function tenantSql(tenant: Tenant, ...statements: string[]): Promise<void> {
  const client = new pg.Client({ connectionString: tenant.database_url })
  await client.connect()
  try {
    for (const statement of statements) await client.query(statement)
  } finally {
    await client.end()
  }
}

t.test('npm start', { timeout: 240_000 }, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-settings-'))
  const settings = {
    TENANTRY_REST_ROLLBACK: '1',
    TENANTRY_FUNCTIONS_MAY_REACH: '10.1.0.0/16',
    TENANTRY_WEBHOOKS_MAY_REACH: '10.2.0.0/16',
    TENANTRY_BACKUPS: join(directory, 'backups'),
    TENANTRY_TRUSTED_PROXIES: '10.3.0.1',
    // Otherwise the watchdog ends the session that makes a line of 128 MB.
    TENANTRY_SESSION_LIMITS: 'Free.memory_bytes=none',
  }
  const installation = await startInstallation({
    dataDirectory: join(directory, 'data'),
    runtimes: 2,
    environment: settings,
    logLevel: 'debug',
  })
  t.teardown(async () => {
    await removeInstallation(installation)
    await rm(directory, { recursive: true, force: true })
  })
  const created = await call(installation, 'POST', '/v1/tenants', { name: 'acme', plan: 'Free', region: 'local' })
  t.equal(created.status, 201)
  const tenant = (await created.json()) as Tenant
  const request = (method: string, path: string, body?: object, headers = {}) =>
    fetch(`${installation.gatewayUrl}/t/acme${path}`, {
      method,
      headers: { authorization: `Bearer ${tenant.keys.secret_key}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    })

  t.test('npm start passes each part its settings', async (t) => {
    const [controlPlane, runtime, gateway] = await Promise.all(
      ['control-plane', 'runtime-1', 'gateway'].map((service) => environmentOf(installation, service)),
    )
    const {
      TENANTRY_BACKUPS,
      TENANTRY_WEBHOOKS_MAY_REACH,
      TENANTRY_REST_ROLLBACK,
      TENANTRY_FUNCTIONS_MAY_REACH,
      TENANTRY_TRUSTED_PROXIES,
    } = settings
    t.match(controlPlane, { TENANTRY_BACKUPS, TENANTRY_WEBHOOKS_MAY_REACH })
    t.match(runtime, { TENANTRY_REST_ROLLBACK, TENANTRY_FUNCTIONS_MAY_REACH })
    t.match(gateway, { TENANTRY_TRUSTED_PROXIES })
    t.ok((await stat(settings.TENANTRY_BACKUPS)).isDirectory(), 'the directory of backups was created')
    const backup = (await (await call(installation, 'POST', `/v1/tenants/${tenant.tenant_id}/backups`)).json()) as {
      error: { code: string }
    }
    t.not(backup.error.code, 'BACKUPS_OFF')
  })

  t.test('The runtime accepts tx=rollback when TENANTRY_REST_ROLLBACK is 1', async (t) => {
    const schema = {
      name: 'notes',
      fields: [{ name: 'id', type: 'number', primary: true }],
      rls_policy: { type: 'service' },
    }
    t.equal((await request('POST', '/rest/v1/schemas', schema)).status, 201)
    t.equal((await request('POST', '/admin/reload-schemas')).status, 200)
    const inserted = await request('POST', '/rest/v1/notes', { id: 1 }, { prefer: 'tx=rollback' })
    t.equal(inserted.headers.get('preference-applied'), 'tx=rollback')
    t.same(await (await request('GET', '/rest/v1/notes')).json(), [])
  })

  t.test('The demo reads the platform key from standard input', async (t) => {
    const demo = spawn(
      process.execPath,
      ['examples/demo.ts', '--control-url', installation.controlUrl, '--key-file', '-'],
      { cwd: project, stdio: ['pipe', 'pipe', 'inherit'] },
    )
    demo.stdin.end(`${installation.platformKey}\n`)
    const [output] = await Promise.all([text(demo.stdout), once(demo, 'close')])
    t.match(output, /the demo passed/)
    t.equal(demo.exitCode, 0)
    for (const page of ['README.md', ...globSync('docs/operate/*.md', { cwd: project })])
      t.notMatch(
        await readFile(join(project, page), 'utf8'),
        /cat \S*platform-key *>/,
        `${page} does not copy the key to a file`,
      )
  })

  t.test('Supervision continues after a log line of 128 MB and a flood of lines', async (t) => {
    const enlarge = "do $$ begin raise log 'long %', repeat('x', 134217728); end $$"
    const flood = "do $$ begin for n in 1..20000 loop raise warning 'flood %', n; end loop; end $$"
    // Warnings also go to the client, which does not use them.
    await tenantSql(tenant, "set client_min_messages = 'error'", enlarge, flood)
    while (!/lines of the service were dropped/.test(installation.output().stderr)) await pause(20)
    const lines = installation.output().stderr.split('\n')
    const long = lines.filter((line) => line.includes('"msg":"long xxx'))
    t.equal(long.length, 1, 'the line is in the log')
    t.ok(
      lines.every((line) => Buffer.byteLength(line) < 70_000),
      'no line is too long',
    )
    const shown = lines.filter((line) => line.includes('"msg":"flood ')).length
    t.ok(shown > 0 && shown < 20_000, `${shown} lines of the flood`)
    await checkRestarts(t, installation, 'runtime-0', 'after it')
  })

  t.test('Supervision continues while the log is not read, and after its reader has gone', async (t) => {
    const { supervisor } = installation
    supervisor.stderr?.pause()
    // This is more than a pipe holds, and well within what the budget admits.
    const fill = `do $$ begin for n in 1..20 loop raise warning '%', repeat('x', 60000); end loop; end $$`
    await tenantSql(tenant, "set client_min_messages = 'error'", fill)
    await checkRestarts(t, installation, 'runtime-1', 'while the log is not read')
    supervisor.stderr?.destroy()
    supervisor.stdout?.destroy()
    await checkRestarts(t, installation, 'gateway', 'when the reader of the log has gone')
    await checkRestarts(t, installation, 'postgres', 'when the reader of the log has gone')
    t.equal(await installation.stop(), 0)
  })
})

/** Runs npm start until it ends by itself, without the test runner's hook, which would write in the output of the services. */
async function runToEnd(
  environment: Record<string, string>,
  directory: string,
): Promise<{ code: number | null; output: string }> {
  const child = spawn(
    '/usr/bin/env',
    ['-u', 'NODE_OPTIONS', process.execPath, main, '--json', '--data', join(directory, 'data')],
    { env: { ...process.env, ...environment }, stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => (output += chunk))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, output }
}

t.test('An invalid configuration ends the start with one line', { timeout: 120_000 }, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-wrong-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  t.same(await runToEnd({ TENANTRY_REST_ROLBACK: '1' }, directory), {
    code: 78,
    output: 'Unknown setting TENANTRY_REST_ROLBACK. Did you mean TENANTRY_REST_ROLLBACK?\n',
  })
  t.same(await runToEnd({ TENANTRY_PORT: '4400' }, directory), {
    code: 78,
    output: 'npm start sets TENANTRY_PORT itself. Use npm start -- --port instead.\n',
  })
  t.same(await runToEnd({ TENANTRY_SIBLINGS: '1' }, directory), {
    code: 78,
    output: 'npm start sets TENANTRY_SIBLINGS itself. Remove it from the environment.\n',
  })
  t.same(await runToEnd({ TENANTRY_RUNTIMES: '3' }, directory), {
    code: 78,
    output: 'npm start sets TENANTRY_RUNTIMES itself. Use npm start -- --runtimes instead.\n',
  })
  await t.rejects(stat(join(directory, 'data')), { code: 'ENOENT' }, 'nothing was created')
  const long = join(directory, 'x'.repeat(80))
  t.match(JSON.parse((await runToEnd({}, long)).output.trimEnd().split('\n').at(-1) ?? ''), {
    msg: `The path of the data directory has ${long.length + 5} bytes. Allowed: 85, because Unix sockets are in it.`,
  })
  await t.rejects(stat(long), { code: 'ENOENT' }, 'nothing was created')

  // When the start runs as root, the services run as another user.
  await chmod(directory, 0o755)
  const prices = join(directory, 'prices.json')
  const example = await readFile(new URL('../../examples/prices.json', import.meta.url), 'utf8')
  await writeFile(prices, example.replace('"fee": "25"', '"fee": 25'))
  const { code, output } = await runToEnd({ TENANTRY_PRICES_FILE: prices }, directory)
  const lines = output
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { level: number; msg: string; service?: string })
  const message = `TENANTRY_PRICES_FILE (${prices}): price_lists[0].plans.Pro.fee is 25, but must be string`
  t.match(lines.at(-1), { level: 60, msg: `control-plane: ${message}` })
  t.equal(code, 78)
  t.same(
    lines.filter(({ service }) => service === 'control-plane').map(({ msg }) => msg),
    [message],
    'one line of the part itself, without a stack',
  )
  t.notOk(
    lines.some(({ msg }) => msg.includes('is restarted')),
    'the part is not started again',
  )
})

t.test('With --watch a service restarts when its code changes', { timeout: 240_000 }, async (t) => {
  const installation = await startInstallation({ watch: true })
  t.teardown(() => removeInstallation(installation))
  const starts = () => installation.output().stderr.split('The gateway is listening.').length - 1
  t.equal(starts(), 1)
  const now = new Date()
  await utimes(join(project, 'gateway/src/main.ts'), now, now)
  await until(() => starts() === 2, 'the second start of the gateway')
  t.equal((await fetch(`${installation.gatewayUrl}/t/missing/`)).status, 404, 'the gateway serves')
  t.equal(await installation.stop(), 0)
})
