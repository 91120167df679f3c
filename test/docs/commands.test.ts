// Every shell command of the README and of the pages of docs/ is run as it is written, against an installation that
// `npm start` makes. Blocks that need an engine, another host or the end of a month are run by the tests that have these.
import { createHmac } from 'node:crypto'
import { mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { compileFunction } from '#examples/functions/compile.ts'
import { exists, installPackages } from '#scripts/debian-packages.ts'
import { removeInstallation, startInstallation } from '#test/support/installation.ts'
import { openShell, type ShellSession } from './support/shell-session.ts'
import { shellBlocks } from './support/shell-blocks.ts'

interface Tenant {
  tenant_id: string
  path_url: string
  keys: { secret_key: string; publishable_key: string; jwt_secret: string }
}

interface Page {
  session: ShellSession
  tenant: Tenant
}

/** What the output of a block must contain, or how it is run. */
type Check = readonly RegExp[] | ((block: string, page: Page) => Promise<void>)

const project = new URL('../../', import.meta.url).pathname
const userId = '11111111-1111-4111-8111-111111111111'
const webhookSecret = 'a secret of the receiver'

/** Blocks of the pages, by page and number. */
const checks: Record<string, Check> = {
  'docs/api.md#1': createdTenant,
  'docs/storage.md#1': [/"name":"avatars"/, /"path":"a\/b c\.txt","size":11/],
  'docs/storage.md#2': [/"message":"Successfully deleted","removed":0/],
  'docs/events.md#1': follow,
  'docs/rest.md#1': [/"actions":\["collection \\"notes\\" was created"\]/],
  'docs/rest.md#2': confirmedReload,
  'docs/rest.md#3': [/HTTP\/1\.1 20[06]/, /content-range: /],
  'docs/functions.md#1': [/"name":"greet"/, /Ada/],
  'docs/functions.md#2': signedWebhook,
  'docs/quotas.md#1': [/"rate_limit":\{"per_second":250,"burst":1000,"source":"tenant"\}/],
  'docs/invoices.md#1': [/examples\/prices\.json/],
  'docs/invoices.md#2': [/"amount":"-12\.500000"/],
  'docs/metering.md#1': [/"api_requests":\{"count":\d+/, /"egress"/],
  'docs/webhooks.md#1': [/"secret":"whsec_/],
}

/** The page's other blocks are for hosts with Docker, and run where there is one. */
const billingKey = [/"scope":"billing"/]

/** Blocks that another test runs, and why they cannot run here. */
const elsewhere: Record<string, string> = {
  'README.md#1': 'every test file runs in `npm test`; test/installation/installation.test.ts runs `npm start`',
  'docs/invoices.md#3': 'test/installation/month-end.test.ts: needs a month that has ended',
}

const blocks = (
  await Promise.all(
    [
      'README.md',
      ...(await readdir(join(project, 'docs')))
        .filter((name) => name.endsWith('.md'))
        .sort()
        .map((name) => `docs/${name}`),
    ].map(shellBlocks),
  )
).flat()

for (const program of ['curl', 'openssl']) if (!(await exists(`/usr/bin/${program}`))) await installPackages(program)
const forKeys = blocks.find(({ id, text }) => id.startsWith('docs/operations.md#') && text.includes('$CONTROL/v1/keys'))
if (forKeys !== undefined) checks[forKeys.id] = billingKey

const installation = await startInstallation({
  environment: { TENANTRY_PRICES_FILE: join(project, 'examples/prices.json') },
})
const directory = await mkdtemp(join(tmpdir(), 'tenantry-docs-'))
t.teardown(async () => {
  await removeInstallation(installation)
  await rm(directory, { recursive: true, force: true })
})
await symlink(installation.data, join(directory, '.tenantry'))
for (const name of ['package.json', 'node_modules', 'control-plane', 'scripts', 'examples'])
  await symlink(join(project, name), join(directory, name))
await writeFile(join(directory, 'greet.wasm'), await compileFunction('greet'))

t.test('each block of the pages is run by this test or by another one', (t) => {
  const known = [...Object.keys(checks), ...Object.keys(elsewhere)]
  const own = blocks.filter(({ id }) => !id.startsWith('README.md') && !id.startsWith('docs/operations.md'))
  t.same(
    own.map(({ id }) => id).filter((id) => !known.includes(id)),
    [],
    'a new block needs a line in `checks`',
  )
  t.same(
    known.filter((id) => !blocks.some((block) => block.id === id)),
    [],
    'no line is left of a block that is gone',
  )
  t.end()
})

t.test('README.md, from the first tenant to its invoice', { timeout: 120_000 }, async (t) => {
  const session = openShell(directory, {})
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
    const tenant = await createTenant(`docs-${page.replace(/^docs\/|\.md$/g, '')}`)
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

/** The README has made a tenant of this name already. */
async function createdTenant(block: string, { session }: Page): Promise<void> {
  const output = await session.run(block.replace('"acme"', '"acme-of-the-api"'))
  t.match(output, /"status":"ready"/)
  t.match(output, /"database_url":"postgresql:/)
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
    USER: userToken(tenant),
    SECRET: webhookSecret,
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
