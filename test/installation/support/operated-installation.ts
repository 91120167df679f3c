// An installation with Docker Compose whose operator follows the pages of the documentation, and what its clients see of all
// data.
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { appendFile, cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Test } from 'tap'
import { ensureCompose } from '#scripts/compose.ts'
import { engineAddress, engineSocket } from '#test/support/docker.ts'
import { freePort, query } from '#test/support/postgres.ts'
import { openShell, type Shell } from '#test/support/runbook.ts'
import { until } from '#test/support/until.ts'
import { month, prices } from './billed-month.ts'

const project = new URL('../../../', import.meta.url).pathname
export const page = 'operate/back-up-and-restore.md'
export const timeout = 300_000

export interface Installation {
  shell: Shell
  /** Path of the operator's checkout. */
  checkout: string
  /** Path of the directory of backups. */
  backups: string
  /** Path of the directory that survives the loss of the host. */
  copy: string
  httpsPort: number
  call(method: string, path: string, body?: unknown): Promise<{ status: number; body: Record<string, unknown> }>
  /** The platform key; a restore does not change it. */
  key: string
}

export interface Owner {
  id: string
  name: string
  key: string
  url: string
}

/** Creates a checkout with the tracked files that runbooks need. Secrets and settings are the checkout's own. */
export async function checkOut(checkout: string): Promise<void> {
  await mkdir(join(checkout, 'deploy'), { recursive: true })
  for (const name of await readdir(join(project, 'deploy'))) {
    if (['Caddyfile', 'remote-host', 'removal', 'remove', 'setup'].includes(name))
      await cp(join(project, 'deploy', name), join(checkout, 'deploy', name))
  }
  await cp(join(project, 'docker-compose.yml'), join(checkout, 'docker-compose.yml'))
  for (const name of ['control-plane', 'contract', 'node_modules', 'package.json', 'scripts'])
    await symlink(join(project, name), join(checkout, name))
}

export async function install(t: Test, { backupsOutside = false } = {}): Promise<Installation> {
  await ensureCompose()
  const base = await mkdtemp(join(tmpdir(), 'tenantry-runbook-'))
  const [checkout, copy, tools] = [join(base, 'checkout'), join(base, 'copy'), join(base, 'tools')]
  const backups = backupsOutside ? join(base, 'backups') : join(checkout, 'deploy/backups')
  await mkdir(copy)
  await checkOut(checkout)
  const [http, https, postgres, control] = await Promise.all([freePort(), freePort(), freePort(), freePort()])
  const options = {
    name: `tenantry-${randomBytes(3).toString('hex')}`,
    address: '127.0.0.1',
    'docker-socket': engineSocket(),
    'network-range': `10.${randomInt(16, 64)}.${randomInt(0, 16) * 16}.0/20`,
    'http-port': String(http),
    'https-port': String(https),
    'postgres-port': String(postgres),
    'control-port': String(control),
  }
  const setUp = Object.entries(options)
    .map(([name, value]) => `--${name} ${value}`)
    .join(' ')
  const controlUrl = `http://127.0.0.1:${control}`
  const replaced = new Map([
    ['/mnt/copy', copy],
    // The documented command has the options that the installation had before.
    ['--backups /mnt/backups', `--backups ${backups} ${setUp}`],
    ['http://127.0.0.1:4400', controlUrl],
  ])
  const shell = await openShell({
    directory: checkout,
    tools,
    environment: { DOCKER_HOST: engineAddress(), CONTROL: controlUrl },
    replaced,
  })
  t.teardown(async () => {
    await shell.run('if [ -e .env ]; then deploy/remove --destroy-all-data; fi')
    await rm(base, { recursive: true })
  })
  await shell.run(`deploy/setup --backups ${backups} ${setUp}`)
  await writeSettings(checkout)
  await shell.run('docker compose up -d')
  const installation: Installation = {
    shell,
    checkout,
    backups,
    copy,
    httpsPort: https,
    key: '',
    async call(method, path, body) {
      const response = await fetch(`${controlUrl}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${installation.key}`,
          prefer: 'wait=60',
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    },
  }
  await until(
    async () => {
      const text = await shell.run(
        'docker compose exec -T control-plane cat /var/lib/tenantry/platform-key 2>/dev/null || true',
      )
      installation.key = /^tnp_\S+$/m.exec(text)?.[0] ?? ''
      return (
        installation.key !== '' &&
        (await installation.call('GET', '/v1/plans').then(
          ({ status }) => status === 200,
          () => false,
        ))
      )
    },
    'the platform',
    timeout,
  )
  await shell.run(`export KEY=${installation.key}`)
  return installation
}

/** Writes the settings that `deploy/setup` does not write. */
export async function writeSettings(checkout: string): Promise<void> {
  await writeFile(join(checkout, 'deploy/prices/prices.json'), JSON.stringify(prices), { mode: 0o644 })
  await appendFile(join(checkout, '.env'), 'TENANTRY_PRICES_FILE=/etc/tenantry/prices/prices.json\n')
}

/** Calls the tenant's URL, without a check of the certificate, whose authority is new. */
async function ofTenant(
  { httpsPort }: Installation,
  { name, key }: Owner,
  method: string,
  path: string,
  body?: string,
  type = 'application/json',
): Promise<{ status: number; bytes: Buffer }> {
  const call = request({
    host: '127.0.0.1',
    port: httpsPort,
    servername: `${name}.localhost`,
    method,
    path,
    rejectUnauthorized: false,
    agent: false,
    timeout: 20_000,
    headers: {
      host: `${name}.localhost:${httpsPort}`,
      authorization: `Bearer ${key}`,
      ...(body === undefined ? {} : { 'content-type': type, 'content-length': Buffer.byteLength(body) }),
    },
  })
  call.end(body)
  const [response] = (await once(call, 'response')) as [IncomingMessage]
  return { status: response.statusCode ?? 0, bytes: Buffer.concat((await response.toArray()) as Buffer[]) }
}

export async function create(installation: Installation, name: string, plan: string): Promise<Owner> {
  const { body } = await installation.call('POST', '/v1/tenants', { name, plan, region: 'local' })
  const { secret_key: key } = body['keys'] as { secret_key: string }
  const owner = { id: String(body['tenant_id']), name, key, url: String(body['database_url']) }
  await untilServed(installation, owner)
  const done = async (method: string, path: string, content: string, type?: string) => {
    const { status, bytes } = await ofTenant(installation, owner, method, path, content, type)
    if (status >= 300) throw new Error(`${method} ${path} failed with ${status}: ${bytes.toString()}`)
  }
  await done('POST', '/storage/v1/bucket', '{"name":"papers","policy":"private"}')
  for (const file of ['letter', 'picture', 'empty'])
    await done(
      'POST',
      `/storage/v1/object/papers/${file}`,
      file === 'empty' ? '' : randomBytes(40_000).toString('base64'),
      'application/octet-stream',
    )
  await query(
    owner.url,
    `create table ledger (id bigint generated always as identity primary key, text text);
      insert into ledger (text) select md5(n::text) from generate_series(1, 200) n`,
  )
  return owner
}

/** Waits until a tenant is ready; the control plane may have just started. */
export async function untilReady(installation: Installation, { id, name }: Owner): Promise<void> {
  await until(
    () =>
      installation.call('GET', `/v1/tenants/${id}`).then(
        ({ body }) => body['status'] === 'ready',
        () => false,
      ),
    `${name} is ready`,
    timeout,
  )
}

/** Waits until clients reach a tenant. The gateway and Caddy may have just started, and Caddy makes a certificate for each name. */
async function untilServed(installation: Installation, owner: Owner): Promise<void> {
  await untilReady(installation, owner)
  await until(
    () =>
      ofTenant(installation, owner, 'GET', '/health').then(
        ({ status }) => status === 200,
        () => false,
      ),
    `${owner.name} is served`,
    timeout,
  )
}

/** Returns what clients see of all data. Two results are equal when nothing was lost. */
export async function seen(installation: Installation, owners: readonly Owner[]): Promise<Record<string, unknown>> {
  const { call } = installation
  const everything: Record<string, unknown> = {}
  const hash = (content: string | Buffer) => createHash('sha256').update(content).digest('hex')
  for (const owner of owners) {
    const { id, name, url } = owner
    await untilServed(installation, owner)
    const tenant = (await call('GET', `/v1/tenants/${id}`)).body
    everything[`${name}: tenant`] = ['name', 'plan', 'region', 'isolation', 'status', 'created'].map(
      (field) => tenant[field],
    )
    for (const file of ['letter', 'picture', 'empty']) {
      const { status, bytes } = await ofTenant(installation, owner, 'GET', `/storage/v1/object/papers/${file}`)
      everything[`${name}: ${file}`] = [status, bytes.length, hash(bytes)]
    }
    everything[`${name}: rows`] = await query(
      url,
      "select count(*)::int as count, md5(string_agg(id || text, ',' order by id)) as content from ledger",
    )
    const usage = await call('GET', `/v1/tenants/${id}/usage/${month}`)
    if (usage.status !== 200) throw new Error(`usage of ${name}: ${JSON.stringify(usage)}`)
    everything[`${name}: usage`] = usage.body
    const { invoices } = (await call('GET', `/v1/tenants/${id}/invoices`)).body as {
      invoices: { id: string; number: string; state: string }[]
    }
    everything[`${name}: invoices`] = invoices.map((invoice) => [
      invoice.number,
      invoice.state,
      hash(JSON.stringify(invoice)),
    ])
    const { backups } = (await call('GET', `/v1/tenants/${id}/backups`)).body as { backups: Record<string, unknown>[] }
    everything[`${name}: backups`] = backups.map(({ id, state, manifest_sha256, bytes }) => [
      id,
      state,
      manifest_sha256,
      bytes,
    ])
  }
  const { keys } = (await call('GET', '/v1/keys')).body as { keys: { name: string }[] }
  everything['keys'] = keys.filter(({ name }) => name !== 'recovery key')
  everything['files of backups'] = await backupFiles(installation)
  return everything
}

/** Returns the hash of each file of all backups of tenants. */
async function backupFiles({ backups: directory }: Installation): Promise<Record<string, string>> {
  const entries = (await readdir(directory, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  const files = entries
    .map((entry) => join(entry.parentPath, entry.name))
    // The control database is dumped by the hour.
    .filter((file) => !file.startsWith(join(directory, 'control-database-')))
    .sort()
  return Object.fromEntries(
    await Promise.all(
      files.map(
        async (file) =>
          [
            file.slice(directory.length),
            createHash('sha256')
              .update(await readFile(file))
              .digest('hex'),
          ] as const,
      ),
    ),
  )
}

export async function backUp({ call }: Installation, { id }: Owner): Promise<string> {
  const { body } = await call('POST', `/v1/tenants/${id}/backups`)
  await until(
    async () => (await call('GET', `/v1/backups/${String(body['id'])}`)).body['state'] === 'complete',
    'the backup is complete',
    timeout,
  )
  return String(body['id'])
}

/** Moves the start of the tenants' plans back by two months, and waits for the invoices of the month before last. */
export async function invoice({ shell, call }: Installation, owners: readonly Owner[]): Promise<void> {
  const older = "update plan_periods set since = date_trunc('month', now()) - interval '2 months'"
  await shell.run(`docker compose exec -T database psql --username=postgres --quiet --command "${older}" postgres`)
  await shell.run('docker compose restart control-plane')
  for (const { id } of owners) {
    await until(
      async () => {
        const response = await call('POST', `/v1/tenants/${id}/invoices/close`, { month }).catch(() => undefined)
        return response?.status === 200 && response.body['state'] === 'final'
      },
      'the invoice',
      timeout,
    )
  }
}
