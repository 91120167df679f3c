// The operators' main commands against a real Docker region, with a tenant that has its own Postgres and runtime in containers.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { promisify } from 'node:util'
import t from 'tap'
import { testEngine } from '#test/support/docker-platform.ts'
import { until } from '#test/support/until.ts'
import { startBackupPlatform } from '../backups/support/tenants.ts'
import { documentedRuns, readDocument } from './support/documented-runs.ts'
import { cliOf, jsonLines } from './support/run-cli.ts'

const platform = await startBackupPlatform(t)
const directory = `${platform.directory}-cli`
t.teardown(() => rm(directory, { recursive: true, force: true }))
const cli = cliOf({
  env: { XDG_CONFIG_HOME: directory, TENANTRY_URL: platform.controlUrl, TENANTRY_KEY: platform.platformKey },
  directory,
})
const documented = documentedRuns(cli, await readDocument(platform.controlUrl))
const docker = async (...args: string[]) =>
  (await promisify(execFile)('docker', ['-H', testEngine(), ...args])).stdout.trim()
const container = (id: string, service: string) =>
  docker('ps', '-q', '--filter', `label=tenantry.stack=${id}`, '--filter', `label=tenantry.service=${service}`)
let id = ''

t.test('A tenant gets its own containers, and its health is shown', async (t) => {
  const create = [
    'tenants',
    'create',
    'acme',
    '--plan',
    'Pro',
    '--region',
    'local',
    '--isolation',
    'database-per-tenant',
  ]
  const [created] = await documented(t, 'POST /v1/tenants', create)
  t.match(created, { status: 'ready', isolation: 'database-per-tenant', keys: { secret_key: /^tn_secret_/ } })
  id = String(created?.['tenant_id'])
  t.match(await container(id, 'postgres'), /^[0-9a-f]{12}$/)
  await documented(t, 'GET /v1/tenants/{id}', ['tenants', 'get', 'acme'])
  const [health] = await documented(t, 'GET /v1/tenants/{id}/health', ['health', 'acme'])
  // Docker checks the health of a new container after a while.
  t.match(health, {
    components: { database: { status: 'healthy' }, postgres: { container: { state: 'running' } } },
  })
})

t.test('The region and its host are shown as Docker and the kernel report them', async (t) => {
  t.match(await documented(t, 'GET /v1/regions', ['regions'], 'regions'), [{ id: 'local', engine: 'docker' }])
  const read = async () =>
    jsonLines<Record<'memory_bytes', { reserved_by_tenants: number }>>(await cli(['hosts', '--json']))
  await until(async () => ((await read())[0]?.memory_bytes.reserved_by_tenants ?? 0) > 0, 'the measurement')
  const [host] = await documented(t, 'GET /v1/hosts', ['hosts', 'list'], 'hosts')
  await documented(t, 'GET /v1/hosts/{id}', ['hosts', 'get', 'local'])
  const limits = await docker('inspect', '--format', '{{.HostConfig.Memory}}', ...(await ids(id)))
  const sum = limits.split('\n').reduce((total, bytes) => total + Number(bytes), 0)
  const info = JSON.parse(await docker('info', '--format', '{{json .}}')) as {
    Name: string
    MemTotal: number
    NCPU: number
  }
  t.match(host, {
    name: info.Name,
    state: 'reachable',
    tenants: { total: 1, dedicated: 1 },
    cpu_millis: { total: info.NCPU * 1000 },
    memory_bytes: { total: info.MemTotal, reserved_by_tenants: sum },
  })
  t.same([info.MemTotal, info.NCPU], [totalmem(), cpus().length], 'the engine is on this machine')
  const { memory_bytes: memory, disk_bytes: disk, cpu_millis: cpu } = host as Record<string, Record<string, number>>
  const root = await docker('info', '--format', '{{.DockerRootDir}}')
  const [, total] = (await promisify(execFile)('df', ['-Pk', root])).stdout.split('\n')[1]?.split(/\s+/) ?? []
  t.equal(disk?.['total'], Number(total) * 1024, 'the disk of the volumes')
  for (const amounts of [memory, disk, cpu]) {
    const { free = -1, total: all = 0 } = amounts ?? {}
    t.ok(free >= 0 && free <= all, `${free} of ${all}`)
  }
})

/** Returns the IDs of a tenant's running containers. */
async function ids(stack: string): Promise<string[]> {
  return (await docker('ps', '-q', '--filter', `label=tenantry.stack=${stack}`)).split('\n')
}

t.test('Drift is shown, and one field of it repaired', async (t) => {
  t.equal((await cli(['tenants', 'update', 'acme', '--drift-policy', 'report'])).code, 0)
  await docker('update', '--restart', 'no', '--cpus', '0.3', await container(id, 'runtime'))
  const [drift] = await documented(t, 'GET /v1/tenants/{id}/drift', ['drift', 'acme'])
  t.match(drift, { drifted: true, differences: [{ field: 'cpu_millis' }, { field: 'restart_policy' }] })
  const repair = ['drift', 'repair', 'acme', '--field', 'runtime:restart_policy']
  const [repaired] = await documented(t, 'POST /v1/tenants/{id}/drift/repair', repair)
  t.match(repaired, { operation: { kind: 'repair', state: 'succeeded' } })
  t.match(await cli(['drift', 'acme', '--exit-code']), { code: 9, stdout: /runtime +cpu_millis +\d+ +300 +alone\n$/ })
  t.match(await cli(['drift', 'repair', 'acme']), { code: 0, stdout: /All differences of acme: repaired/ })
  t.match(await cli(['drift', 'acme', '--exit-code']), { code: 0 })
})

t.test('A log is followed while the service writes', async (t) => {
  const shown = await documented(t, 'GET /v1/tenants/{id}/logs', ['logs', 'acme', '--component', 'postgres'], 'lines')
  t.ok(shown.some(({ text }) => String(text).includes('ready to accept connections')))
  const interruption = new AbortController()
  const following = cli(['logs', 'acme', '--component', 'postgres', '-f', '--tail', '0', '--json'], {
    signal: interruption.signal,
    onData: (text) => {
      if (text.includes('written while it is followed')) interruption.abort()
    },
  })
  const write = "do $$ begin raise log 'written while it is followed'; end $$"
  const writing = setInterval(() => {
    void container(id, 'postgres').then((one) =>
      docker('exec', one, 'psql', '-h', '/run/postgresql', '-U', 'postgres', '-c', write).catch(() => undefined),
    )
  }, 500)
  const followed = await following.finally(() => clearInterval(writing))
  t.equal(followed.code, 130)
  t.ok(jsonLines(followed).some(({ text }) => String(text).includes('written while it is followed')))
})

t.test('A rollout moves the tenant to another image, and back when it is canceled', async (t) => {
  const image = `tenantry/tenant-runtime:test-${randomBytes(4).toString('hex')}`
  const before = await container(id, 'runtime')
  await docker('commit', '--pause=false', '--change', `LABEL test=${image}`, before, image)
  t.teardown(() => docker('rmi', '-f', image))
  const start = ['rollouts', 'start', '--region', 'local', '--component', 'runtime', '--image', image]
  const [started] = await documented(t, 'POST /v1/rollouts', [...start, '--soak-seconds', '60'])
  const rollout = String(started?.['id'])
  const read = async () => (await documented(t, 'GET /v1/rollouts/{id}', ['rollouts', 'get', rollout]))[0]
  await until(async () => !['', before].includes(await container(id, 'runtime')), 'the new container')
  t.match(await read(), { state: 'running', moved: 1, tenants: [{ tenant_id: id }] })
  t.match(await documented(t, 'GET /v1/rollouts', ['rollouts', 'list'], 'rollouts'), [{ id: rollout }])
  await documented(t, 'POST /v1/rollouts/{id}/cancel', ['rollouts', 'cancel', rollout])
  await until(
    async () => jsonLines(await cli(['rollouts', 'get', rollout, '--json']))[0]?.['finished'] !== null,
    'the end',
  )
  t.match(await read(), { state: 'rolled_back', tenants: [{ tenant_id: id, state: 'returned' }] })
  const ready = async () => jsonLines(await cli(['tenants', 'get', 'acme', '--json']))[0]?.['status'] === 'ready'
  await until(ready, 'the tenant is ready again')
})

t.test('A tenant is paused, woken, restarted, suspended and resumed', async (t) => {
  const [paused] = await documented(t, 'POST /v1/tenants/{id}/pause', ['tenants', 'pause', 'acme'])
  t.match(paused, { status: 'paused', operation: { state: 'succeeded' } })
  t.equal(await container(id, 'postgres'), '', 'no container runs')
  const [woken] = await documented(t, 'POST /v1/tenants/{id}/wake', ['tenants', 'wake', 'acme'])
  t.match(woken, { status: 'ready' })
  const before = await container(id, 'runtime')
  const [restarted] = await documented(t, 'POST /v1/tenants/{id}/restart', ['tenants', 'restart', 'acme'])
  t.match(restarted, { status: 'ready', operation: { kind: 'restart' } })
  t.not(await container(id, 'runtime'), before, 'the container is another one')
  const suspend = ['tenants', 'suspend', 'acme', '--reason', 'unpaid']
  t.match(await documented(t, 'PATCH /v1/tenants/{id}', suspend), [{ status: 'suspended', suspend_reason: 'unpaid' }])
  t.match(await documented(t, 'PATCH /v1/tenants/{id}', ['tenants', 'resume', 'acme']), [{ status: 'ready' }])
})

t.test('A backup is taken, listed, verified and restored', async (t) => {
  const [backup] = await documented(t, 'POST /v1/tenants/{id}/backups', ['backups', 'create', 'acme'])
  const backupId = String(backup?.['id'])
  t.match(backup, { state: 'complete' })
  await documented(t, 'GET /v1/tenants/{id}/backups', ['backups', 'list', 'acme'], 'backups')
  const verify = ['backups', 'verify', backupId]
  const [verified] = await documented(t, 'POST /v1/backups/{id}/verify', verify)
  t.match(verified, { verified: /^20/, verify_error: null })
  const restore = ['backups', 'restore', backupId, '--confirm', 'acme']
  const [restored] = await documented(t, 'POST /v1/backups/{id}/restore', restore)
  t.match(restored, { operation: { kind: 'restore', state: 'succeeded' } })
})

t.test('A tenant is deleted and restored, and the installation is healthy', async (t) => {
  const [deleted] = await documented(t, 'DELETE /v1/tenants/{id}', ['tenants', 'delete', 'acme', '--confirm', 'acme'])
  t.match(deleted, { status: 'deleting', purge_after: /^20/ })
  t.match(await documented(t, 'POST /v1/tenants/{id}/undelete', ['tenants', 'restore', 'acme']), [{ status: 'ready' }])
  await documented(t, 'GET /health', ['health'])
  const doctor = await cli(['doctor', '--json'])
  t.equal(doctor.code, 0, doctor.stdout)
  t.match(jsonLines(doctor), [{ check: 'configuration' }, { check: 'connection', status: 'ok' }, { check: 'key' }])
  t.same(
    jsonLines(doctor).filter(({ status }) => status === 'failed'),
    [],
  )
})
