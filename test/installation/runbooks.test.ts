// Runs the runbooks of docs/operate/back-up-and-restore.md word for word. An installation with a shared and a dedicated tenant
// is copied, its control database is restored, and then all of it is restored on a new host. Afterwards every tenant, row,
// file, backup and invoice exists.
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { ensureCompose } from '#scripts/compose.ts'
import { engineAddress, engineSocket } from '#test/support/docker.ts'
import { freePort, query } from '#test/support/postgres.ts'
import { openShell, shellBlocks, type Shell } from '#test/support/runbook.ts'
import { until } from '#test/support/until.ts'

const project = new URL('../../', import.meta.url).pathname
const page = 'operate/back-up-and-restore.md'
const timeout = 300_000

const today = new Date()
/** The month before last, which is over and can be closed. */
const month = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - 2, 1)).toISOString().slice(0, 7)

const prices = {
  currency: 'EUR',
  seller: { name: 'Nordlicht Hosting GmbH', lines: ['20457 Hamburg'] },
  price_lists: [
    {
      from: month,
      tax: { name: 'VAT', percent: '19' },
      plans: { Free: { fee: '1' }, Pro: { fee: '25' }, Enterprise: { fee: '99' } },
    },
  ],
}

interface Installation {
  shell: Shell
  /** Path of the operator's checkout. */
  checkout: string
  httpsPort: number
  call(method: string, path: string, body?: unknown): Promise<{ status: number; body: Record<string, unknown> }>
  /** The platform key; a restore does not change it. */
  key: string
}

interface Owner {
  id: string
  name: string
  key: string
  url: string
}

/** Creates a checkout with the tracked files that runbooks need. Secrets and settings are the checkout's own. */
async function checkOut(checkout: string): Promise<void> {
  await mkdir(join(checkout, 'deploy'), { recursive: true })
  for (const name of await readdir(join(project, 'deploy'))) {
    if (['Caddyfile', 'remote-host', 'remove', 'setup'].includes(name))
      await cp(join(project, 'deploy', name), join(checkout, 'deploy', name))
  }
  await cp(join(project, 'docker-compose.yml'), join(checkout, 'docker-compose.yml'))
  for (const name of ['control-plane', 'contract', 'node_modules', 'package.json', 'scripts'])
    await symlink(join(project, name), join(checkout, name))
}

async function install(t: Test): Promise<Installation> {
  await ensureCompose()
  const base = await mkdtemp(join(tmpdir(), 'tenantry-runbook-'))
  const [checkout, copy, tools] = [join(base, 'checkout'), join(base, 'copy'), join(base, 'tools')]
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
  const controlUrl = `http://127.0.0.1:${control}`
  const replaced = new Map([
    ['/mnt/copy', copy],
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
  await shell.run(
    `deploy/setup ${Object.entries(options)
      .map(([name, value]) => `--${name} ${value}`)
      .join(' ')}`,
  )
  await writeFile(join(checkout, 'deploy/prices/prices.json'), JSON.stringify(prices), { mode: 0o644 })
  await shell.run('echo TENANTRY_PRICES_FILE=/etc/tenantry/prices/prices.json >> .env; docker compose up -d')
  const installation: Installation = {
    shell,
    checkout,
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

async function create(installation: Installation, name: string, plan: string): Promise<Owner> {
  const { body } = await installation.call('POST', '/v1/tenants', { name, plan, region: 'local' })
  const { secret_key: key } = body['keys'] as { secret_key: string }
  const owner = { id: String(body['tenant_id']), name, key, url: String(body['database_url']) }
  await untilReady(installation, owner)
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
async function untilReady(installation: Installation, { id, name }: Owner): Promise<void> {
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

/** Returns what clients see of all data. Two results are equal when nothing was lost. */
async function seen(installation: Installation, owners: readonly Owner[]): Promise<Record<string, unknown>> {
  const { call } = installation
  const everything: Record<string, unknown> = {}
  const hash = (content: string | Buffer) => createHash('sha256').update(content).digest('hex')
  for (const owner of owners) {
    const { id, name, url } = owner
    await untilReady(installation, owner)
    // The gateway and Caddy may have just started.
    await until(
      () =>
        ofTenant(installation, owner, 'GET', '/health').then(
          ({ status }) => status === 200,
          () => false,
        ),
      `${name} is served`,
      timeout,
    )
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
  everything['files of backups'] = await backupFiles(installation)
  return everything
}

/** Returns the hash of each file of all backups. */
async function backupFiles({ checkout }: Installation): Promise<Record<string, string>> {
  const directory = join(checkout, 'deploy/backups')
  const entries = (await readdir(directory, { recursive: true, withFileTypes: true })).filter((entry) => entry.isFile())
  const files = entries.map((entry) => join(entry.parentPath, entry.name)).sort()
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

async function backUp({ call }: Installation, { id }: Owner): Promise<string> {
  const { body } = await call('POST', `/v1/tenants/${id}/backups`)
  await until(
    async () => (await call('GET', `/v1/backups/${String(body['id'])}`)).body['state'] === 'complete',
    'the backup is complete',
    timeout,
  )
  return String(body['id'])
}

/** Moves the start of the tenants' plans back by two months, and waits for the invoices of the month before last. */
async function invoice({ shell, call }: Installation, owners: readonly Owner[]): Promise<void> {
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

t.test('The runbooks restore an installation', { timeout: 1_800_000 }, async (t) => {
  const installation = await install(t)
  const { shell, call } = installation
  const [acme, globex] = [await create(installation, 'acme', 'Free'), await create(installation, 'globex', 'Pro')]
  const owners = [acme, globex]
  await invoice(installation, owners)
  await backUp(installation, globex)

  const [names = '', images = '', everyDay = ''] = await shellBlocks(page, 'Back up')
  const copy = async () => {
    await shell.run(everyDay)
    for (const owner of owners) await untilReady(installation, owner)
  }
  for (const block of [names, images]) await shell.run(block)
  await copy()
  const second = await backUp(installation, globex)
  const before = await seen(installation, owners)
  t.equal((before['globex: backups'] as unknown[]).length, 2)
  t.equal((before['acme: invoices'] as unknown[]).length, 1)

  await t.test('The runbook restores the control database on the same host', async (t) => {
    const [restore = '', list = '', adopt = ''] = await shellBlocks(
      page,
      'Restore the control database on the same host',
    )
    await shell.run(restore)
    await until(
      () =>
        shell.run(list).then(
          (printed) => printed.includes(second),
          () => false,
        ),
      'the newer backup is listed as unknown',
      timeout,
    )
    t.match(await shell.run(adopt), new RegExp(`"id":"${second}".*"state":"complete"`))
    t.same(await seen(installation, owners), before)
    t.same((await call('GET', '/v1/backups?state=unknown')).body['backups'], [])
  })

  await t.test('The runbook restores everything on a new host', async (t) => {
    await copy()
    await shell.run('deploy/remove --destroy-all-data')
    await rm(installation.checkout, { recursive: true })
    await checkOut(installation.checkout)
    const blocks = await shellBlocks(page, 'Restore everything on a new host')
    for (const block of blocks) t.comment(await shell.run(block))
    t.same(await seen(installation, owners), before)
    for (const state of ['unknown', 'missing'])
      t.same((await call('GET', `/v1/backups?state=${state}`)).body['backups'], [], state)
    t.same((await call('GET', '/v1/tenants?status=failed')).body['tenants'], [])
  })
})
