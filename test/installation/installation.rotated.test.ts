// `npm start`, started twice, on a taken port and as another user, with single services and all processes killed.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chown, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { serviceIdentity } from '#local/process/unprivileged.ts'
import { compileFunction } from '#examples/functions/compile.ts'
import { processesOf, removeInstallation, startInstallation, type Installation } from '#test/support/installation.ts'
import { freePort } from '#test/support/postgres.ts'
import { until } from '#test/support/until.ts'

const services = ['postgres', 'control-database', 'control-plane', 'runtime-0', 'runtime-1', 'gateway']

interface Tenant {
  name: string
  key: string
}

async function createTenant(installation: Installation, name: string): Promise<Tenant> {
  const response = await fetch(`${installation.controlUrl}/v1/tenants`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${installation.platformKey}`,
      'content-type': 'application/json',
      prefer: 'wait=30',
    },
    body: JSON.stringify({ name, plan: 'Free', region: 'local' }),
  })
  const body = (await response.json()) as { status: string; keys: { secret_key: string } }
  if (body.status !== 'ready') throw new Error(JSON.stringify(body))
  return { name, key: body.keys.secret_key }
}

async function request(
  installation: Installation,
  tenant: Tenant,
  method: string,
  path: string,
  body?: string,
  type = 'application/json',
): Promise<string> {
  const response = await fetch(`${installation.gatewayUrl}/t/${tenant.name}${path}`, {
    method,
    headers: { authorization: `Bearer ${tenant.key}`, ...(body === undefined ? {} : { 'content-type': type }) },
    ...(body === undefined ? {} : { body }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text
}

/** Writes data into each module, so that later checks can read it. */
async function fill(installation: Installation, tenant: Tenant, wasm: Uint8Array<ArrayBuffer>): Promise<void> {
  await request(installation, tenant, 'POST', '/storage/v1/object/system/kept.txt', 'kept', 'text/plain')
  await request(
    installation,
    tenant,
    'POST',
    '/rest/v1/schemas',
    JSON.stringify({
      name: 'notes',
      fields: [
        { name: 'id', type: 'number', primary: true },
        { name: 'text', type: 'string' },
      ],
      rls_policy: { type: 'service' },
    }),
  )
  await request(installation, tenant, 'POST', '/admin/reload-schemas', '{}')
  await request(installation, tenant, 'POST', '/rest/v1/notes', '{"id":1,"text":"kept"}')
  const form = new FormData()
  form.set('name', 'greet')
  form.set('wasm', new Blob([wasm]), 'greet.wasm')
  const deployed = await fetch(`${installation.gatewayUrl}/t/${tenant.name}/functions/v1/deploy`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tenant.key}` },
    body: form,
  })
  if (deployed.status !== 201) throw new Error(await deployed.text())
}

/** Asserts that the data of `fill` exists and that storage accepts a new file. */
async function checkServes(t: Test, installation: Installation, tenant: Tenant, when: string): Promise<void> {
  t.equal(await request(installation, tenant, 'GET', '/storage/v1/object/system/kept.txt'), 'kept', `${when}: the file`)
  t.match(
    JSON.parse(await request(installation, tenant, 'GET', '/rest/v1/notes?id=eq.1')),
    [{ text: 'kept' }],
    `${when}: the row`,
  )
  t.match(
    JSON.parse(await request(installation, tenant, 'POST', '/functions/v1/invoke/greet', '{"name":"Ada"}')),
    { greeting: 'Hello, Ada!' },
    `${when}: the function`,
  )
  await request(installation, tenant, 'POST', '/storage/v1/object/system/new.txt', when, 'text/plain')
  t.equal(await request(installation, tenant, 'GET', '/storage/v1/object/system/new.txt'), when, `${when}: a new file`)
}

/** Repeats an action until it succeeds, for up to 30 seconds. */
async function eventually<T>(work: () => Promise<T>): Promise<T> {
  const deadline = Date.now() + 30_000
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (Date.now() > deadline) throw error
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
}

/** Starts an installation that must fail. @returns its exit code and output */
async function failedStart(args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [new URL('../../local/src/main.ts', import.meta.url).pathname, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const [code] = (await once(child, 'close')) as [number | null]
  return { code, stdout, stderr }
}

t.test('An installation of npm start', { timeout: 600_000 }, async (t) => {
  const wasm = await compileFunction('greet')
  let installation = await startInstallation({ runtimes: 2 })
  t.teardown(() => removeInstallation(installation))
  const { data } = installation
  const tenant = await createTenant(installation, 'acme')
  await fill(installation, tenant, wasm)
  const pidOf = (service: string) => installation.pid(service)

  t.test('npm start prints one JSON line and shows no secret', async (t) => {
    const { stdout, stderr } = installation.output()
    t.match(
      stdout,
      /^\{"control_url":"http:\/\/127\.0\.0\.1:\d+","gateway_url":"http:\/\/127\.0\.0\.1:\d+","platform_key":"[^"]+","data":"[^"]+"\}\n$/,
    )
    t.notOk(stderr.includes(installation.platformKey), 'no key in the log')
    for (const name of ['master-key', 'internal-token', 'postgres-password', 'platform-key']) {
      const { mode } = await stat(join(data, 'secrets', name))
      t.equal(mode & 0o077, 0, `only the owner can read ${name}`)
      const text = (await readFile(join(data, 'secrets', name), 'utf8')).trim()
      t.notOk(stderr.includes(text), `${name} is not in the log`)
    }
  })

  t.test('A second start with the same data directory fails', async (t) => {
    const second = await failedStart(['--json', '--data', data, '--port', String(await freePort())])
    t.equal(second.code, 1)
    t.equal(second.stdout, '')
    t.match(second.stderr, /is in use by another installation \(process \d+\)/)
    await checkServes(t, installation, tenant, 'after the rejected second start')
  })

  t.test('A start on a taken port names the process and the option to use', async (t) => {
    const holder = createServer().listen(0, '127.0.0.1')
    await once(holder, 'listening')
    const { port } = holder.address() as { port: number }
    const scratch = await mkdtemp(join(tmpdir(), 'tenantry-port-'))
    const rejected = await failedStart(['--data', join(scratch, 'data'), '--port', String(port)])
    t.equal(rejected.code, 1)
    t.match(rejected.stdout, new RegExp(`Port ${port} is taken by .*process ${process.pid}.*--port N`))
    holder.close()
    await rm(scratch, { recursive: true, force: true })
  })

  t.test('Tenants are served while the control plane is suspended, also after other services restart', async (t) => {
    const controlPlane = await pidOf('control-plane')
    process.kill(controlPlane, 'SIGSTOP')
    await checkServes(t, installation, tenant, 'control plane stopped')
    for (const service of ['gateway', 'runtime-0', 'runtime-1']) {
      process.kill(await pidOf(service), 'SIGKILL')
      await eventually(() => checkServes(t, installation, tenant, `control plane stopped, ${service} restarted`))
    }
    process.kill(controlPlane, 'SIGCONT')
    await eventually(() => createTenant(installation, 'later'))
  })

  t.test('The supervisor restarts each killed service', async (t) => {
    for (const service of services) {
      const before = await pidOf(service)
      process.kill(before, 'SIGKILL')
      await eventually(async () => {
        if ((await pidOf(service)) === before) throw new Error(`${service} is not back yet`)
        // Requests without a control plane would use up what the gateway has leased.
        await fetch(`${installation.controlUrl}/health`)
        await request(installation, tenant, 'GET', '/storage/v1/object/system/kept.txt')
        const health = (await (await fetch(`${installation.gatewayUrl}/health`)).json()) as Record<string, unknown>
        if (health['quotas_synced'] !== true) throw new Error('The gateway cannot lease requests yet.')
      })
      await eventually(() => request(installation, tenant, 'POST', '/functions/v1/invoke/greet', '{}'))
      await checkServes(t, installation, tenant, `${service} killed`)
    }
    await eventually(() => createTenant(installation, 'after-kills'))
  })

  t.test('All data survives SIGKILL of all processes and truncated files', async (t) => {
    await installation.killAll()
    await writeFile(join(data, 'postgres', 'postmaster.pid'), '')
    await writeFile(join(data, 'control-database', 'postmaster.pid'), '1\n')
    await writeFile(join(data, 'sockets', '.s.PGSQL.5433.lock'), '1\n')
    await writeFile(join(data, 'lock'), '')
    await writeFile(join(data, 'run', 'runtime-0.json'), '{"pid":')
    installation = await startInstallation({ dataDirectory: data, runtimes: 2 })
    await checkServes(t, installation, tenant, 'everything killed')
    t.equal(
      (
        await fetch(`${installation.controlUrl}/v1/tenants`, {
          headers: { authorization: `Bearer ${installation.platformKey}` },
        })
      ).status,
      200,
      'the key is the same',
    )
  })

  t.test('A new supervisor ends the services of a killed one', async (t) => {
    const gone = once(installation.supervisor, 'exit')
    installation.supervisor.kill('SIGKILL')
    await gone
    const orphans = await processesOf(data)
    t.ok(orphans.length >= services.length, `left behind: ${orphans.length} processes`)
    installation = await startInstallation({ dataDirectory: data, runtimes: 2 })
    t.match(installation.output().stderr, /A process of an earlier run is ended/)
    await checkServes(t, installation, tenant, 'supervisor killed')
  })

  t.test('The first signal stops the installation cleanly, the second one at once', async (t) => {
    t.equal(await installation.stop(), 0)
    t.same(await processesOf(data), [], 'no process runs')
    t.same(await readdir(join(data, 'run')), [], 'no process is recorded as running')
    installation = await startInstallation({ dataDirectory: data, runtimes: 2 })
    await checkServes(t, installation, tenant, 'after a clean stop')
    // A suspended process cannot react to the request to stop.
    process.kill(await pidOf('gateway'), 'SIGSTOP')
    const gone = once(installation.supervisor, 'exit')
    installation.supervisor.kill('SIGINT')
    await eventually(async () => {
      if (!/The installation stops/.test(installation.output().stderr)) throw new Error('not yet')
    })
    installation.supervisor.kill('SIGINT')
    await gone
    t.match(installation.output().stderr, /A second signal/)
    // Killed processes may still be ending when their supervisor has exited.
    await until(async () => (await processesOf(data)).length === 0, 'the end of every process')
    t.same(await processesOf(data), [], 'no process runs')
  })
})

t.test('A normal user can run an installation', { timeout: 600_000 }, async (t) => {
  const user = await serviceIdentity()
  const scratch = await mkdtemp(join(tmpdir(), 'tenantry-user-'))
  if (user !== undefined) await chown(scratch, user.uid, user.gid)
  const installation = await startInstallation({
    dataDirectory: join(scratch, 'data'),
    ...(user === undefined ? {} : { user }),
  })
  t.teardown(async () => {
    await installation.stop()
    await rm(scratch, { recursive: true, force: true })
  })
  const owner = (await stat(join(scratch, 'data', 'secrets'))).uid
  t.equal(owner, user?.uid ?? process.getuid?.(), 'the data belongs to the user')
  const tenant = await createTenant(installation, 'acme')
  await fill(installation, tenant, await compileFunction('greet'))
  await checkServes(t, installation, tenant, 'as a normal user')
})
