// Runs every shell command of the README and of the pages of docs/ and docs/operate/ as it is written, against an installation
// that `npm start` makes. Other tests run the blocks that need an engine, another host or the end of a month.
import { createHmac } from 'node:crypto'
import { globSync } from 'node:fs'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { compileFunction } from '#examples/functions/compile.ts'
import { exists, installPackages } from '#scripts/debian-packages.ts'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
import { until } from '#test/support/until.ts'
import { guideChecks, runJavaScript } from './support/guide.ts'
import { openShell, type ShellSession } from './support/shell-session.ts'
import { shellBlocks } from './support/shell-blocks.ts'

interface Tenant {
  tenant_id: string
  path_url: string
  database_url: string
  keys: { secret_key: string; publishable_key: string; jwt_secret: string }
}

interface Page {
  session: ShellSession
  tenant: Tenant
}

/** The patterns that the output of a block must match, or a function that runs the block. */
type Check = readonly RegExp[] | ((block: string, page: Page) => Promise<void>)

const project = new URL('../../', import.meta.url).pathname
const userId = '11111111-1111-4111-8111-111111111111'
const webhookSecret = 'a secret of the receiver'

/** Blocks of the pages, by page and number. */
const checks: Record<string, Check> = {
  'docs/api.md#1': createdTenant,
  ...guideChecks(() => ({ controlUrl: installation.controlUrl, directory })),
  'docs/command-line.md#1': [/Logged in to /, /^audit +ok /m],
  'docs/command-line.md#2': [/^secret_key +tn_secret_/m, /^shop +t_[0-9a-f]{20} +Free +local +ready/m],
  'docs/command-line.md#3': [/^backups_kept|^plan +Pro$/m, /^state +complete$/m, /^operation +undelete succeeded$/m],
  'docs/command-line.md#4': [/^\+ gallery$/m, /"per_second":250/, /^= shop\n= gallery$/m],
  'docs/command-line.md#5': [/as "my-app"/, /"greeting":"Hello, Ada!"/, /^result\n42$/m],
  'docs/storage.md#1': [/"name":"avatars"/, /"path":"a\/b c\.txt","size":11/],
  'docs/storage.md#2': [/"message":"Successfully deleted","removed":0/],
  'docs/events.md#1': follow,
  'docs/realtime.md#1': [/^202\n202$/m],
  'docs/rest.md#1': [/"actions":\["collection \\"notes\\" was created"\]/],
  'docs/rest.md#2': confirmedReload,
  'docs/rest.md#3': [/HTTP\/1\.1 20[06]/, /content-range: /],
  'docs/rest.md#4': [/"success":true/, /"db_aggregates_enabled":false/],
  'docs/functions.md#1': [/"name":"greet"/, /Ada/],
  'docs/functions.md#2': signedWebhook,
  'docs/quotas.md#1': [/"rate_limit":\{"per_second":250,"burst":1000,"source":"tenant"\}/],
  'docs/invoices.md#1': [/examples\/prices\.json/],
  'docs/invoices.md#2': [/"amount":"-12\.500000"/],
  'docs/metering.md#1': [/"api_requests":\{"count":\d+/, /"egress"/],
  'docs/sql.md#1': [],
  'docs/sql.md#2': sqlClients,
  'docs/sql.md#3': [/"rows":\[\["42"\]\]/],
  'docs/webhooks.md#1': [/"secret":"whsec_/],
  'docs/operate/first-tenant.md#1': connected,
  'docs/operate/first-tenant.md#2': createdTenant,
  'docs/operate/first-tenant.md#3': [/"name":"globex","plan":"Pro"/, /"status":"ready"/],
  'docs/operate/first-tenant.md#4': namedTenant,
  'docs/operate/first-tenant.md#5': [/"status":"ready"/],
  'docs/operate/first-tenant.md#6': [/"status":"healthy"/],
  'docs/operate/first-tenant.md#7': [/"api_requests":\{"count":\d+/],
  'docs/operate/first-tenant.md#8': [/"plan":"Pro"/, /"state":"succeeded"/],
  'docs/operate/first-tenant.md#9': [/"secret_key":"tn_secret_/],
  'docs/operate/first-tenant.md#10': [/"database_url":"postgresql:\/\//, /"state":"succeeded"/],
  'docs/operate/first-tenant.md#11': [/"status":"suspended"/, /"state":"succeeded"/],
  'docs/operate/first-tenant.md#12': [/"status":"ready"/, /"state":"succeeded"/],
  'docs/operate/first-tenant.md#13': [/"status":"deleting"/],
  'docs/operate/first-tenant.md#14': [/"status":"ready"/, /"kind":"undelete","state":"succeeded"/],
  'docs/operate/first-tenant.md#15': [/"kind":"delete","state":"succeeded"/],
  'docs/operate/first-tenant.md#16': [/"scope":"billing"/],
  'docs/operate/first-tenant.md#17': [/"scope":"admin"/],
  'docs/operate/incidents.md#1': [/"tenants":\[/, /"id":"local"/],
  'docs/operate/incidents.md#2': [/"address":"203\.0\.113\.0\/24"/, /"blocked_addresses":\[\{"address"/],
  'docs/operate/monitoring.md#1': [/"status"/, /tenantry_queue_oldest_seconds/, /"tenants":\[/],
  'docs/operate/monitoring.md#2': [/^1 audit\.jsonl$/m, /"whole":true/],
  'docs/operate/processes.md#1': [/"isolation":"database-per-tenant"/, /"status":"ready"/],
  'docs/operate/secrets.md#1': [/"kind":"rotate_service_passwords","state":"succeeded"/],
  'docs/operate/secrets.md#3': [],
  'docs/operate/secrets.md#4': audited('superuser_password.rotate'),
  // The control plane starts again with the new master key while the next block is repeated.
  'docs/operate/secrets.md#5': [],
  'docs/operate/secrets.md#6': audited('master_key.rotate'),
  'docs/operate/secrets.md#7': [],
  'docs/operate/secrets.md#8': [],
  'docs/operate/secrets.md#9': audited('internal_token.rotate'),
}

const recovery =
  'test/installation/recover.rotated.test.ts starts it with these settings, after it has removed the data directory'
const composeRecovery = 'test/installation/docker-recover.soak.test.ts rebuilds a platform on a Docker Engine'
const runbooks = 'test/installation/runbooks.soak.test.ts runs it on a Docker Engine'
const composePlatform = 'test/installation/outages.alone.test.ts sets the platform up on a Docker Engine'
const remoteRegion = 'test/installation/docker-remote-region.soak.test.ts does it with an engine on another host'
const roundTrip =
  'test/backups/docker-round-trip.rotated.test.ts takes, verifies and restores backups on a Docker Engine'
const pointInTime = 'test/backups/docker-recovery.rotated.test.ts restores to moments on a Docker Engine'
const clusters =
  'test/clusters/docker-cluster.rotated.test.ts switches a cluster over and restarts it on a Docker Engine'
const moves = 'test/moves/ moves homes, also into services of their own, and cancels and reverts moves'
const rebalances = 'test/cli/operators.rotated.test.ts runs the commands, and test/rebalance/ relieves databases'
const npmStart = 'test/local/npm-start.test.ts starts installations with options and settings'

/** Blocks that another test runs, and why they cannot run here. */
const elsewhere: Record<string, string> = {
  'README.md#1': 'the test files run in `npm test`; test/local/npm-start.test.ts runs `npm start`',
  'docs/invoices.md#3': 'test/installation/month-end.soak.test.ts: needs a month that has ended',
  'docs/backups.md#1': roundTrip,
  'docs/backups.md#2': 'test/backups/docker-schedule.soak.test.ts sets schedules on a Docker Engine',
  'docs/backups.md#3': roundTrip,
  'docs/backups.md#4': roundTrip,
  'docs/backups.md#5': roundTrip,
  'docs/backups.md#6':
    'test/backups/docker-convert.soak.test.ts restores into the other isolation model on a Docker Engine',
  'docs/backups.md#7': pointInTime,
  'docs/backups.md#8': pointInTime,
  'docs/reliability.md#1': 'it runs every test file, this one among them',
  'docs/operate/install.md#1': npmStart,
  'docs/operate/install.md#2': npmStart,
  'docs/operate/install.md#3': 'test/local/systemd-unit.test.ts checks the unit; a container has no systemd',
  'docs/operate/install.md#4': composePlatform,
  'docs/operate/install.md#5': composePlatform,
  'docs/operate/install.md#6': 'test/installation/compose.soak.test.ts runs the demo on a Docker Engine',
  'docs/operate/install.md#7': 'test/installation/docker-remove.rotated.test.ts runs it on a Docker Engine',
  'docs/operate/secrets.md#2': 'test/superuser-passwords/docker-replace.soak.test.ts needs a region on a Docker Engine',
  'docs/operate/upgrade.md#1':
    'test/rollouts/ rolls images out on a Docker Engine; it needs a newer version of the project',
  'docs/operate/upgrade.md#2': 'test/local/npm-start.test.ts runs `npm start`; it needs a newer version of the project',
  'docs/operate/back-up-and-restore.md#1': runbooks,
  'docs/operate/back-up-and-restore.md#2': runbooks,
  'docs/operate/back-up-and-restore.md#3': runbooks,
  'docs/operate/back-up-and-restore.md#4': runbooks,
  'docs/operate/back-up-and-restore.md#5': runbooks,
  'docs/operate/back-up-and-restore.md#6': runbooks,
  'docs/operate/back-up-and-restore.md#7': runbooks,
  'docs/operate/back-up-and-restore.md#8': runbooks,
  'docs/operate/back-up-and-restore.md#9': runbooks,
  'docs/operate/back-up-and-restore.md#10': runbooks,
  'docs/operate/back-up-and-restore.md#11': 'it copies the directory of an installation that is stopped; this one runs',
  'docs/operate/back-up-and-restore.md#12': recovery,
  'docs/operate/back-up-and-restore.md#13': recovery,
  'docs/operate/back-up-and-restore.md#14': composeRecovery,
  'docs/operate/back-up-and-restore.md#15': composeRecovery,
  'docs/operate/back-up-and-restore.md#16': composeRecovery,
  'docs/operate/back-up-and-restore.md#17': composeRecovery,
  'docs/operate/moves.md#1': moves,
  'docs/operate/moves.md#2': moves,
  'docs/operate/moves.md#3': moves,
  'docs/operate/moves.md#4': moves,
  'docs/operate/moves.md#5': moves,
  'docs/operate/moves.md#6': moves,
  'docs/operate/moves.md#7': 'test/moves/compose-tour.soak.test.ts runs it on an installation with Docker Compose',
  'docs/operate/moves.md#8': moves,
  'docs/operate/moves.md#9': moves,
  'docs/operate/moves.md#10': rebalances,
  'docs/operate/moves.md#11': rebalances,
  'docs/operate/clusters.md#1': clusters,
  'docs/operate/clusters.md#2': clusters,
  'docs/operate/remote-region.md#1': remoteRegion,
  'docs/operate/remote-region.md#2': remoteRegion,
  'docs/operate/remote-region.md#3': remoteRegion,
  'docs/operate/remote-region.md#4': remoteRegion,
  'docs/operate/file-storage.md#1':
    'test/storage/s3-runtime.rotated.test.ts starts a runtime with these settings and an S3 server',
  'docs/operate/file-storage.md#2': 'test/storage/move.rotated.test.ts moves files between two backends',
  'docs/operate/configuration.md#1': npmStart,
  'docs/operate/configuration.md#2': 'docs/invoices.md#1 checks a price file; the restart needs Docker Compose',
  'docs/operate/configuration.md#3': composePlatform,
}

const blocks = (
  await Promise.all(
    ['README.md', ...globSync(['docs/*.md', 'docs/operate/*.md'], { cwd: project }).sort()].map(shellBlocks),
  )
).flat()

const programs = { curl: 'curl', openssl: 'openssl', psql: 'postgresql-client' }
for (const [program, name] of Object.entries(programs))
  if (!(await exists(`/usr/bin/${program}`))) await installPackages(name)

const installation = await startInstallation({
  environment: { TENANTRY_PRICES_FILE: join(project, 'examples/prices.json') },
})
const directory = await mkdtemp(join(tmpdir(), 'tenantry-docs-'))
t.teardown(async () => {
  await removeInstallation(installation)
  await rm(directory, { recursive: true, force: true })
})
await symlink(installation.data, join(directory, '.tenantry'))
for (const name of ['package.json', 'node_modules', 'control-plane', 'scripts', 'examples', 'cli'])
  await symlink(join(project, name), join(directory, name))
await writeFile(join(directory, 'greet.wasm'), await compileFunction('greet'))

t.test('Each block of the pages is run by this test or by another one', (t) => {
  const known = [...Object.keys(checks), ...Object.keys(elsewhere)]
  const own = blocks.filter(({ id }) => !id.startsWith('README.md'))
  t.same(
    own.map(({ id }) => id).filter((id) => !known.includes(id)),
    [],
    'a new block needs a line in `checks`',
  )
  t.same(
    known.filter((id) => !blocks.some((block) => block.id === id)),
    [],
    'no line names a block that does not exist',
  )
  t.end()
})

t.test('README.md, from the first tenant to its invoice', { timeout: 120_000 }, async (t) => {
  const session = openShell(directory, { XDG_CONFIG_HOME: directory })
  const here = (text: string, shown: Tenant | undefined) =>
    text
      .replaceAll('http://127.0.0.1:4400', installation.controlUrl)
      .replaceAll('http://127.0.0.1:4401', installation.gatewayUrl)
      .replace(/tn_secret_\S+…\S*/, shown?.keys.secret_key ?? '')
      .replace(/t_[0-9a-f]{20}/, shown?.tenant_id ?? '')
  let tenant: Tenant | undefined
  const outputs: string[] = []
  for (const { id, text } of blocks.filter(
    (block) => block.id.startsWith('README.md#') && elsewhere[block.id] === undefined,
  )) {
    const output = await session.run(here(text, tenant))
    if (tenant === undefined) tenant = JSON.parse(output) as Tenant
    outputs.push(output)
    t.pass(`${id} ran`)
  }
  t.match(outputs.join(''), /"path":"coast\/lighthouse\.png","size":25473/)
  t.match(outputs.join(''), /"text":"the lamp is lit"/)
  t.match(outputs.join(''), /"api_requests":\{"count":\d+,"limit":10000/)
  const picture = await fetch(`${installation.gatewayUrl}/t/acme/storage/v1/object/pictures/coast/lighthouse.png`)
  t.equal(picture.status, 200)
  t.equal((await picture.arrayBuffer()).byteLength, 25_473)
})

for (const page of [...new Set(Object.keys(checks).map((id) => id.replace(/#.*/, '')))]) {
  t.test(page, { timeout: 120_000 }, async (t) => {
    const tenant = await createTenant(`docs-${page.replace(/^docs\/|\.md$/g, '').replaceAll('/', '-')}`)
    const session = openShell(directory, variables(tenant))
    for (const { id, text } of blocks.filter((block) => block.id.startsWith(`${page}#`))) {
      const check = checks[id]
      if (check === undefined) continue
      if (typeof check === 'function') await check(text, { session, tenant })
      else {
        const output = await session.run(text)
        for (const wanted of check) t.match(output, wanted, id)
      }
      t.pass(`${id} ran`)
    }
  })
}

/** Several pages create a tenant of this name. */
async function createdTenant(block: string, { session, tenant }: Page): Promise<void> {
  const output = await session.run(block.replace('"acme"', `"acme-${tenant.tenant_id.slice(2, 10)}"`))
  t.match(output, /"status":"ready"/)
  t.match(output, /"database_url":"postgresql:/)
}

/** The page names the port that `npm start` prefers. */
async function connected(block: string, { session }: Page): Promise<void> {
  t.match(await session.run(block.replace('http://127.0.0.1:4400', installation.controlUrl)), /"status"/)
}

/** Repeats a block until the audit log that it reads has an entry. */
function audited(action: string): Check {
  return (block, { session }) =>
    until(
      () =>
        session.run(block).then(
          (output) => output.includes(action),
          () => false,
        ),
      `the audit log has ${action}`,
    )
}

/** The page names the ID of a tenant that it has shown. */
async function namedTenant(block: string, { session, tenant }: Page): Promise<void> {
  await session.run(block.replace(/t_[0-9a-f]{20}/, tenant.tenant_id))
}

async function follow(block: string, { session, tenant }: Page): Promise<void> {
  const bucket = JSON.stringify({ name: 'avatars', policy: 'authenticated' })
  await call(tenant, 'POST', '/storage/v1/bucket', bucket, 'application/json')
  await session.follow(block, 'storage.object.created', () =>
    call(tenant, 'POST', '/storage/v1/object/avatars/a.txt', 'text', 'text/plain'),
  )
}

/** The reload that loses data is confirmed as the page shows it, for the change that the page names. */
async function confirmedReload(block: string, { session, tenant }: Page): Promise<void> {
  await call(
    tenant,
    'PATCH',
    '/rest/v1/schemas?name=eq.notes',
    JSON.stringify({
      fields: [
        { name: 'id', type: 'uuid', primary: true },
        { name: 'owner', type: 'string' },
        { name: 'title', type: 'string', required: true },
        { name: 'rank', type: 'string' },
      ],
    }),
    'application/json',
    tenant.keys.secret_key,
  )
  t.match(await session.run(block), /"success":true/)
}

/** Verifies the gateway's certificate with psql and with node-postgres. */
async function sqlClients(block: string, { session, tenant }: Page): Promise<void> {
  t.match(await session.run(block), /TLSv1\.3/)
  await runJavaScript('docs/sql.md', directory, { DATABASE_URL: tenant.database_url })
}

async function signedWebhook(block: string, { session, tenant }: Page): Promise<void> {
  const form = new FormData()
  form.set('name', 'receiver')
  form.set('trigger', JSON.stringify({ Webhook: { secret: webhookSecret } }))
  form.set('wasm', new Blob([await compileFunction('greet')]), 'greet.wasm')
  const response = await fetch(`${tenant.path_url}/functions/v1/deploy`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tenant.keys.secret_key}` },
    body: form,
  })
  t.equal(response.status, 201, await response.text())
  await session.run(block)
}

async function call(
  tenant: Tenant,
  method: string,
  path: string,
  body: string,
  type: string,
  key = userToken(tenant),
): Promise<void> {
  const response = await fetch(`${tenant.path_url}${path}`, {
    method,
    body,
    headers: { authorization: `Bearer ${key}`, 'content-type': type },
  })
  t.ok(response.ok, `${method} ${path}: ${response.status} ${await response.text()}`)
}

async function createTenant(name: string): Promise<Tenant> {
  const response = await fetch(`${installation.controlUrl}/v1/tenants`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${installation.platformKey}`,
      'content-type': 'application/json',
      prefer: 'wait=30',
    },
    body: JSON.stringify({ name, plan: 'Free', region: 'local' }),
  })
  t.match(response.status, /20[12]/)
  return (await response.json()) as Tenant
}

/** The variables that the pages name. */
function variables(tenant: Tenant): Record<string, string> {
  return {
    CONTROL: installation.controlUrl,
    KEY: installation.platformKey,
    ID: tenant.tenant_id,
    TENANT: tenant.path_url,
    SECRET_KEY: tenant.keys.secret_key,
    DATABASE_URL: tenant.database_url,
    USER: userToken(tenant),
    SECRET: webhookSecret,
    XDG_CONFIG_HOME: directory,
  }
}

/** A user's token as the tenant's own sign-in service makes it: HS256 with the tenant's secret. */
function userToken(tenant: Tenant): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const seconds = Math.floor(Date.now() / 1000)
  const claims = { sub: userId, role: 'authenticated', iat: seconds, exp: seconds + 3600 }
  const signed = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`
  return `${signed}.${createHmac('sha256', tenant.keys.jwt_secret).update(signed).digest('base64url')}`
}
