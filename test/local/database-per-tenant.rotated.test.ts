// `npm start` with a tenant that has its own Postgres and runtime, as processes: it serves everything, survives every kill, and
// leaves nothing behind.
import { chown, mkdtemp, readdir, readFile, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import t from 'tap'
import { serviceIdentity } from '#local/process/unprivileged.ts'
import {
  ownPid,
  processesOf,
  removeInstallation,
  startInstallation,
  type Installation,
} from '#test/support/installation.ts'
import { until } from '#test/support/until.ts'

interface Tenant {
  tenant_id: string
  status: string
  path_url: string
  database_url: string
  keys: { secret_key: string }
}

type Json = Record<string, unknown>

async function call(installation: Installation, method: string, path: string, body?: object) {
  const response = await fetch(`${installation.controlUrl}/v1${path}`, {
    method,
    headers: {
      authorization: `Bearer ${installation.platformKey}`,
      prefer: 'wait=60',
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  })
  return { status: response.status, body: (await response.json()) as Json }
}

async function createTenant(installation: Installation, name: string): Promise<Tenant> {
  const body = { name, plan: 'Free', region: 'local', isolation: 'database-per-tenant' }
  return (await call(installation, 'POST', '/tenants', body)).body as unknown as Tenant
}

function request(tenant: Tenant, method: string, path: string, body?: object | string): Promise<Response> {
  return fetch(`${tenant.path_url}${path}`, {
    method,
    headers: {
      authorization: `Bearer ${tenant.keys.secret_key}`,
      'content-type': typeof body === 'string' ? 'text/plain' : 'application/json',
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
}

async function sql(tenant: Tenant, statement: string): Promise<Json[]> {
  const client = new pg.Client({ connectionString: tenant.database_url })
  await client.connect()
  try {
    return (await client.query<Json>(statement)).rows
  } finally {
    await client.end()
  }
}

async function isServed(tenant: Tenant): Promise<boolean> {
  const file = await request(tenant, 'GET', '/storage/v1/object/public/files/a.txt').catch(() => undefined)
  const text = (await file?.text()) ?? ''
  return file?.status === 200 && text === 'a file'
}

async function uidOf(pid: number): Promise<string | undefined> {
  return /^Uid:\t(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]
}

async function fill(tenant: Tenant): Promise<void> {
  await request(tenant, 'POST', '/storage/v1/bucket', { name: 'files', policy: 'public' })
  await request(tenant, 'POST', '/storage/v1/object/files/a.txt', 'a file')
}

t.test('npm start with a database per tenant', { timeout: 420_000 }, async (t) => {
  let installation = await startInstallation({ runtimes: 1 })
  t.teardown(() => removeInstallation(installation))
  const tenant = await createTenant(installation, 'bold')
  const path = `/tenants/${tenant.tenant_id}`
  const restart = async () =>
    (installation = await startInstallation({
      runtimes: 1,
      dataDirectory: installation.data,
      port: Number(new URL(installation.controlUrl).port),
    }))

  await t.test('A tenant with its own database is ready, and serves files, rows and SQL', async (t) => {
    t.match(tenant, { status: 'ready', isolation: 'database-per-tenant', database_url: /\/home$/ })
    await fill(tenant)
    t.ok(await isServed(tenant))
    const schema = {
      name: 'notes',
      fields: [
        { name: 'id', type: 'number', primary: true },
        { name: 'text', type: 'string' },
      ],
      rls_policy: { type: 'service' },
    }
    t.equal((await request(tenant, 'POST', '/rest/v1/schemas', schema)).status, 201)
    t.equal((await request(tenant, 'POST', '/admin/reload-schemas')).status, 200)
    t.equal((await request(tenant, 'POST', '/rest/v1/notes', { id: 1, text: 'one' })).status, 201)
    t.same(await sql(tenant, `select text from ${tenant.tenant_id}.notes`), [{ text: 'one' }])
    await t.rejects(sql(tenant, "copy (select 1) to program 'true'"), /permission denied/)
  })

  await t.test('Its usage, health, logs, sessions and drift are observed', async (t) => {
    await until(async () => {
      const { resources, components } = (await call(installation, 'GET', `${path}/usage`)).body as {
        resources: { api_requests: { count: number }; storage: { files_bytes: number } }
        components: Record<string, { memory_bytes: number; disk_bytes: number }>
      }
      const isMeasured = Object.values(components).every((one) => one.memory_bytes > 0 && one.disk_bytes > 0)
      return resources.api_requests.count >= 5 && resources.storage.files_bytes === 6 && isMeasured
    }, 'the usage')
    await until(async () => (await call(installation, 'GET', `${path}/health`)).body['status'] === 'healthy', 'health')
    const read = async (component: string) =>
      ((await call(installation, 'GET', `${path}/logs?component=${component}&tail=50`)).body['lines'] as Json[])
        .map(({ text }) => text)
        .join('\n')
    t.match(await read('postgres'), /ready to accept connections/)
    t.match(await read('runtime'), /The runtime is listening/)
    t.match((await call(installation, 'GET', `${path}/sessions`)).body, { sessions: [{ login: 'runtime' }] })
    t.match((await call(installation, 'GET', `${path}/drift`)).body, { drifted: false, differences: [] })
  })

  await t.test('Each service has the limits of its user, and of prlimit', async (t) => {
    const pids = await Promise.all(
      ['postgres', 'runtime'].map((service) => ownPid(installation, tenant.tenant_id, service)),
    )
    const limits = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/limits`, 'utf8')))
    const bytes = 384 * 2 ** 20
    t.match(limits[0], new RegExp(`Max data size +${bytes} `))
    t.match(limits[1], new RegExp(`Max data size +${2 ** 30} `))
    for (const text of limits) t.match(text, /Max core file size +0 +0 /)
    const larger = { resources: { postgres: { memory_bytes: 2 * bytes, cpu_millis: 500 } } }
    t.equal((await call(installation, 'PATCH', path, larger)).status, 200)
    // Its memory is a setting of Postgres, too, so another process runs with it.
    const resized = await ownPid(installation, tenant.tenant_id, 'postgres')
    t.match(await readFile(`/proc/${resized}/limits`, 'utf8'), new RegExp(`Max data size +${2 * bytes} `))
    if (process.getuid?.() !== 0) return
    const users = new Set(await Promise.all([resized, pids[1] ?? 0, await installation.pid('gateway')].map(uidOf)))
    t.equal(users.size, 3, 'each has a user of its own')
    for (const text of limits) t.match(text, /Max processes +256 +256 /)
    const volumes = join(installation.data, 'containers/volumes')
    for (const volume of await readdir(volumes)) t.equal((await stat(join(volumes, volume, 'data'))).mode & 0o077, 0)
  })

  await t.test('It is served again after a kill of its Postgres, its runtime and the control plane', async (t) => {
    for (const service of ['postgres', 'runtime']) {
      const killed = await ownPid(installation, tenant.tenant_id, service)
      process.kill(killed, 'SIGKILL')
      await until(async () => (await ownPid(installation, tenant.tenant_id, service)) !== killed, `another ${service}`)
      await until(() => isServed(tenant), `the tenant after a kill of ${service}`)
      t.same(await sql(tenant, `select text from ${tenant.tenant_id}.notes`), [{ text: 'one' }], service)
    }
    const before = await Promise.all(
      ['postgres', 'runtime'].map((service) => ownPid(installation, tenant.tenant_id, service)),
    )
    process.kill(await installation.pid('control-plane'), 'SIGKILL')
    t.ok(await isServed(tenant))
    await until(async () => (await call(installation, 'GET', path).catch(() => undefined))?.status === 200)
    t.same(
      await Promise.all(['postgres', 'runtime'].map((service) => ownPid(installation, tenant.tenant_id, service))),
      before,
    )
  })

  await t.test('Suspension ends its processes, and resumption starts them with all data', async (t) => {
    const pids = await Promise.all(
      ['postgres', 'runtime'].map((service) => ownPid(installation, tenant.tenant_id, service)),
    )
    t.match((await call(installation, 'PATCH', path, { suspended: true })).body, { status: 'suspended' })
    for (const pid of pids) await t.rejects(readFile(`/proc/${pid}/stat`), { code: 'ENOENT' })
    t.equal((await request(tenant, 'GET', '/rest/v1/notes')).status, 403)
    t.match((await call(installation, 'PATCH', path, { suspended: false })).body, { status: 'ready' })
    t.ok(await isServed(tenant))
  })

  await t.test('What its processes cannot do is rejected, and it is paused meanwhile', async (t) => {
    await call(installation, 'PATCH', path, { pause_after_seconds: 10 })
    const off = { status: 422, body: { code: 'BACKUPS_OFF', message: /requires a region with containers/ } }
    t.match(await call(installation, 'POST', `${path}/backups`), off)
    t.match(await call(installation, 'PATCH', path, { backup_schedule: '5 3 * * *' }), off)
    t.match(await call(installation, 'PATCH', path, { archive_days: 3 }), off)
    const cluster = { name: 'cluster', plan: 'Free', region: 'local', isolation: 'cluster-per-tenant' }
    t.match(await call(installation, 'POST', '/tenants', cluster), {
      body: { code: 'UNSUPPORTED_ISOLATION', message: /Allowed: schema-per-tenant, database-per-tenant\./ },
    })
    const shared = await call(installation, 'POST', '/tenants', { name: 'shared', plan: 'Pro', region: 'local' })
    t.match(shared.body, { isolation: 'schema-per-tenant', isolation_mismatch: null })
    const backup = await call(installation, 'POST', `/tenants/${String(shared.body['tenant_id'])}/backups`)
    const into = { name: 'restored', isolation: 'database-per-tenant' }
    t.match(await call(installation, 'POST', `/backups/${String(backup.body['id'])}/restore`, { into }), off)
    await until(async () => (await call(installation, 'GET', path)).body['status'] === 'paused', 'the pause')
    t.ok(await isServed(tenant), 'a request wakes it')
  })

  await t.test(
    'It loses nothing when the supervisor is killed, and its processes are ended by the next start',
    async (t) => {
      const pid = await ownPid(installation, tenant.tenant_id, 'postgres')
      installation.supervisor.kill('SIGKILL')
      await until(() => installation.supervisor.signalCode !== null)
      t.ok(await readFile(`/proc/${pid}/stat`, 'utf8'), 'its processes run until the next start')
      await restart()
      await until(() => isServed(tenant), 'the tenant after a kill of the supervisor')
      await t.rejects(readFile(`/proc/${pid}/stat`), { code: 'ENOENT' })
      t.same(await sql(tenant, `select text from ${tenant.tenant_id}.notes`), [{ text: 'one' }])
    },
  )

  await t.test('Its removal and the end of the installation leave nothing behind', async (t) => {
    const pids = await Promise.all(
      ['postgres', 'runtime'].map((service) => ownPid(installation, tenant.tenant_id, service)),
    )
    await call(installation, 'DELETE', `${path}?purge=true`)
    for (const pid of pids) await t.rejects(readFile(`/proc/${pid}/stat`), { code: 'ENOENT' })
    const containers = join(installation.data, 'containers')
    for (const kind of ['networks', 'volumes', 'programs']) t.same(await readdir(join(containers, kind)), [], kind)
    t.match(JSON.parse(await readFile(join(containers, 'users.json'), 'utf8')), { numbers: {} })
    t.same(await readdir(join(installation.data, 's')), [])
    await createTenant(installation, 'last')
    t.equal(await installation.stop(), 0)
    t.same(await processesOf(installation.data), [])
  })
})

t.test('A normal user has tenants with their own database', { timeout: 240_000 }, async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'tenantry-user-'))
  const user = await serviceIdentity()
  if (user !== undefined) await chown(directory, user.uid, user.gid)
  const options = {
    dataDirectory: join(directory, 'data'),
    logLevel: 'warn',
    runtimes: 1,
    ...(user === undefined ? {} : { user }),
  }
  let installation = await startInstallation(options)
  t.teardown(() => removeInstallation(installation))
  const tenant = await createTenant(installation, 'plain')
  t.match(tenant, { status: 'ready', isolation: 'database-per-tenant' })
  await fill(tenant)
  t.ok(await isServed(tenant))
  const pids = await Promise.all(
    ['postgres', 'runtime'].map((service) => ownPid(installation, tenant.tenant_id, service)),
  )
  t.same(new Set(await Promise.all(pids.map(uidOf))), new Set([await uidOf(await installation.pid('gateway'))]))
  t.match(await readFile(`/proc/${pids[0]}/limits`, 'utf8'), new RegExp(`Max data size +${384 * 2 ** 20} `))
  await installation.killAll()
  installation = await startInstallation({ ...options, port: Number(new URL(installation.controlUrl).port) })
  await until(() => isServed(tenant), 'the tenant after a kill of everything')
  t.equal(await installation.stop(), 0)
  t.same(await processesOf(installation.data), [])
})
