// `npm run demo`: creates, uses and deletes a tenant in one minute, on a running installation (`npm start`, or any other by
// its control URL), with the unmodified client and plain fetch. It prints each step with its time, and ends with the first
// step whose result is not the expected one.
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { createClient } from '@supabase/supabase-js'
import { compileFunction } from './functions/compile.ts'
import { userToken } from './user-token.ts'

interface CreatedTenant {
  tenant_id: string
  path_url: string
  keys: { publishable_key: string; secret_key: string; jwt_secret: string }
}

interface Usage {
  resources: { api_requests: { count: number }; storage: { files_bytes: number }; functions: { invocations: number } }
}

const { values: options } = parseArgs({
  options: {
    data: { type: 'string', default: '.tenantry' },
    // For an installation that `npm start` did not start here. The key file `-` is standard input.
    'control-url': { type: 'string' },
    'key-file': { type: 'string' },
    plan: { type: 'string', default: 'Free' },
    region: { type: 'string', default: 'local' },
    // By default, the model that the plan has in the region.
    isolation: { type: 'string' },
    keep: { type: 'boolean', default: false },
  },
})

/** Runs one step, prints its name and time, and returns its value. */
async function step<T>(name: string, work: () => Promise<T>): Promise<T> {
  const begin = performance.now()
  const value = await work()
  console.log(`${`${(performance.now() - begin).toFixed(0)} ms`.padStart(8)}  ${name}`)
  return value
}

/** Returns the data of a client's response. An error ends the demo. */
function ok<T>(response: { data: T; error: unknown }): NonNullable<T> {
  assert.equal(response.error, null, JSON.stringify(response.error))
  assert.ok(response.data !== null && response.data !== undefined, 'The response has no data.')
  return response.data
}

async function json(response: Response): Promise<Record<string, unknown>> {
  const body = await response.text()
  assert.ok(response.ok, `${response.url} returned ${response.status}: ${body}`)
  return JSON.parse(body) as Record<string, unknown>
}

/** Reads the key from a file, or from standard input, so that it need not be stored in a file. */
async function readKey(file: string): Promise<string> {
  return (file === '-' ? await text(process.stdin) : await readFile(file, 'utf8')).trim()
}

async function readInstallation(): Promise<{ controlUrl: string; platformKey: string }> {
  const { data, 'control-url': controlUrl, 'key-file': keyFile } = options
  if (controlUrl !== undefined) {
    assert.ok(keyFile !== undefined, '--control-url requires --key-file, a file that contains a platform key.')
    return { controlUrl: controlUrl.replace(/\/$/, ''), platformKey: await readKey(keyFile) }
  }
  const found = await readFile(join(data, 'installation.json'), 'utf8').catch(() => {
    throw new Error(
      `No running installation in ${data}. Run "npm start" in another terminal, or name one with --data or --control-url.`,
    )
  })
  const { control_url } = JSON.parse(found) as { control_url: string }
  return { controlUrl: control_url, platformKey: await readKey(keyFile ?? join(data, 'secrets', 'platform-key')) }
}

const installation = await step('find the running installation', async () => {
  const found = await readInstallation()
  await json(await fetch(`${found.controlUrl}/health`))
  return found
})

interface ControlCall {
  method?: string
  body?: string
  prefer?: string
  key?: string
}

function control(
  path: string,
  { method = 'GET', body, prefer, key = installation.platformKey }: ControlCall = {},
): Promise<Response> {
  const headers = new Headers({ authorization: `Bearer ${key}` })
  if (body !== undefined) headers.set('content-type', 'application/json')
  if (prefer !== undefined) headers.set('prefer', prefer)
  const request: RequestInit = { method, headers, signal: AbortSignal.timeout(90_000) }
  return fetch(`${installation.controlUrl}${path}`, body === undefined ? request : { ...request, body })
}

/** Seconds that the demo waits for the tenant, in addition to the first minute. */
const maxTries = 120
const name = `demo-${randomBytes(4).toString('hex')}`
const tenant = await step(`create the tenant ${name} (${options.plan})`, async () => {
  const { plan, region, isolation } = options
  const body = JSON.stringify({ name, plan, region, isolation })
  const created = await json(await control('/v1/tenants', { method: 'POST', body, prefer: 'wait=60' }))
  // A cluster of its own can take longer than the API lets a client wait.
  for (let { status } = created, tries = 0; status !== 'ready'; tries++) {
    assert.ok(status === 'pending' && tries < maxTries, `The tenant is ${String(status)}.`)
    await sleep(1_000)
    status = (await json(await control(`/v1/tenants/${String(created['tenant_id'])}`)))['status']
  }
  return created as unknown as CreatedTenant
})

const url = tenant.path_url
const service = createClient(url, tenant.keys.secret_key)
const asUser = (userId: string) =>
  createClient(url, tenant.keys.publishable_key, { accessToken: async () => userToken(tenant.keys.jwt_secret, userId) })
const user = () => {
  const id = randomUUID()
  return { id, client: asUser(id) }
}
const ada = user()
const ben = user()

const picture = await readFile(join(import.meta.dirname, 'lighthouse.png'))
await step('Ada creates a private bucket', async () =>
  ok(await ada.client.storage.createBucket('pictures', { public: false })),
)
await step(`Ada uploads a picture of ${picture.length} bytes`, async () =>
  ok(await ada.client.storage.from('pictures').upload('coast/lighthouse.png', picture, { contentType: 'image/png' })),
)
await step('… and reads the same bytes back', async () => {
  const blob = ok(await ada.client.storage.from('pictures').download('coast/lighthouse.png'))
  assert.equal(blob.type, 'image/png')
  assert.ok(
    picture.equals(Buffer.from(await blob.arrayBuffer())),
    'The downloaded picture differs from the uploaded one.',
  )
})
await step('Ben cannot read it', async () => {
  const { data, error } = await ben.client.storage.from('pictures').download('coast/lighthouse.png')
  assert.equal(data, null)
  assert.ok(error)
})
await step('a signed URL opens it without a session', async () => {
  const { signedUrl } = ok(await ada.client.storage.from('pictures').createSignedUrl('coast/lighthouse.png', 60))
  const response = await fetch(signedUrl)
  assert.equal(response.status, 200)
  assert.ok(picture.equals(Buffer.from(await response.arrayBuffer())), 'The signed URL returned different bytes.')
})

await step('create a schema "notes" whose rows belong to their owners, and reload', async () => {
  const headers = { authorization: `Bearer ${tenant.keys.secret_key}`, 'content-type': 'application/json' }
  const schema = {
    name: 'notes',
    fields: [
      { name: 'id', type: 'uuid', primary: true },
      { name: 'owner_id', type: 'string' },
      { name: 'text', type: 'string', required: true },
    ],
    rls_policy: { type: 'ownership', owner_field: 'owner_id' },
  }
  await json(await fetch(`${url}/rest/v1/schemas`, { method: 'POST', headers, body: JSON.stringify(schema) }))
  await json(await fetch(`${url}/admin/reload-schemas`, { method: 'POST', headers, body: '{}' }))
})
await step('Ada and Ben each insert a note', async () => {
  for (const [user, text] of [
    [ada, 'the lamp is lit'],
    [ben, 'fog at noon'],
  ] as const) {
    const rows = ok(await user.client.from('notes').insert({ id: randomUUID(), text }).select())
    assert.equal(rows.length, 1)
  }
})
await step('each sees only their own note, the service role sees both', async () => {
  const texts = async (client: typeof service) =>
    ok(await client.from('notes').select('text').order('text')).map((row: { text: string }) => row.text)
  assert.deepEqual(await texts(ada.client), ['the lamp is lit'])
  assert.deepEqual(await texts(ben.client), ['fog at noon'])
  assert.deepEqual(await texts(service), ['fog at noon', 'the lamp is lit'])
})

const wasm = await step('compile the function "greet" from AssemblyScript', () => compileFunction('greet'))
await step(`deploy it (${wasm.length} bytes)`, async () => {
  const form = new FormData()
  form.set('name', 'greet')
  form.set('description', 'Greets its caller')
  form.set('trigger', '"Http"')
  form.set('config', JSON.stringify({ timeout: 5, max_memory: 16 * 1024 * 1024 }))
  form.set('wasm', new Blob([wasm], { type: 'application/wasm' }), 'greet.wasm')
  const headers = { authorization: `Bearer ${tenant.keys.secret_key}` }
  await json(await fetch(`${url}/functions/v1/deploy`, { method: 'POST', headers, body: form }))
})
await step('Ada and Ben invoke it', async () => {
  for (const [user, caller] of [
    [ada, 'Ada'],
    [ben, 'Ben'],
  ] as const) {
    const response = JSON.stringify(ok(await user.client.functions.invoke('greet', { body: { name: caller } })))
    assert.ok(response.includes(caller) && response.includes(user.id), `greet returned ${response}`)
  }
})

await step('billing reads the usage', async () => {
  const created = await json(
    await control('/v1/keys', {
      method: 'POST',
      body: JSON.stringify({ name: `billing of ${name}`, scope: 'billing' }),
    }),
  )
  const billing = String(created['key'])
  const deadline = Date.now() + 15_000
  for (;;) {
    const { resources } = (await json(
      await control(`/v1/tenants/${tenant.tenant_id}/usage`, { key: billing }),
    )) as unknown as Usage
    const { api_requests, storage, functions } = resources
    if (api_requests.count >= 15 && storage.files_bytes === picture.length && functions.invocations === 2) {
      console.log(
        `          ${api_requests.count} requests, ${storage.files_bytes} bytes of files, ${functions.invocations} invocations`,
      )
      break
    }
    assert.ok(Date.now() < deadline, `The usage is still ${JSON.stringify(resources)}.`)
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
  await control(`/v1/keys/${String(created['id'])}`, { method: 'DELETE' })
})

if (!options.keep) {
  await step('delete the tenant and all its data', async () => {
    await json(await control(`/v1/tenants/${tenant.tenant_id}?purge=true`, { method: 'DELETE', prefer: 'wait=60' }))
    assert.equal((await control(`/v1/tenants/${tenant.tenant_id}`)).status, 404)
  })
}
console.log('the demo passed')
