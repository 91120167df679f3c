// `npm run chat`: a chat with presence and a live table, on a tenant of its own of the installation that `npm start` runs.
// Ctrl+C deletes the tenant. This program does what an app's own server does: it serves the page and signs users in.
import { randomBytes, randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { userToken } from '../user-token.ts'

interface CreatedTenant {
  tenant_id: string
  name: string
  path_url: string
  keys: { publishable_key: string; secret_key: string; jwt_secret: string }
}

const { values: options } = parseArgs({
  options: {
    data: { type: 'string', default: '.tenantry' },
    /** 0 for any free port. */
    port: { type: 'string', default: '4480' },
  },
})

/** The seconds for which a user stays signed in. */
const tokenSeconds = 86_400

const controlUrl = await readFile(join(options.data, 'installation.json'), 'utf8').then(
  (text) => (JSON.parse(text) as { control_url: string }).control_url,
  () => {
    throw new Error(`No running installation in ${options.data}. Run "npm start" in another terminal.`)
  },
)
const platformKey = (await readFile(join(options.data, 'secrets', 'platform-key'), 'utf8')).trim()

/** Sends a request, and returns the JSON of the response. @throws Error for another status than 2xx */
async function send(method: string, url: string, key: string, body?: object): Promise<unknown> {
  const response = await fetch(url, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', prefer: 'wait=60' },
    body: JSON.stringify(body ?? {}),
    signal: AbortSignal.timeout(90_000),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${url} returned ${response.status}: ${text}`)
  return text === '' ? undefined : JSON.parse(text)
}

const tenant = (await send('POST', `${controlUrl}/v1/tenants`, platformKey, {
  name: `chat-${randomBytes(4).toString('hex')}`,
  plan: 'Free',
  region: 'local',
})) as CreatedTenant
const { path_url: url, keys } = tenant
console.log(`created the tenant ${tenant.name}`)

await send('POST', `${url}/rest/v1/schemas`, keys.secret_key, {
  name: 'tasks',
  fields: [
    { name: 'id', type: 'uuid', primary: true },
    { name: 'owner_id', type: 'string' },
    { name: 'title', type: 'string', required: true, max_length: 200 },
    { name: 'done', type: 'boolean', default: false },
    { name: 'created_at', type: 'datetime', default: 'now()' },
  ],
  rls_policy: { type: 'public_read', owner_field: 'owner_id' },
  // The changes of its records reach the page because of this member.
  events: true,
})
await send('POST', `${url}/admin/reload-schemas`, keys.secret_key)
console.log('created the collection "tasks", whose changes are events')

const page = join(import.meta.dirname, 'page')
const client = createRequire(import.meta.url).resolve('@supabase/supabase-js')
const files: Record<string, [file: string, type: string]> = {
  '/': [join(page, 'index.html'), 'text/html'],
  '/chat.css': [join(page, 'chat.css'), 'text/css'],
  '/chat.js': [join(page, 'chat.js'), 'text/javascript'],
  '/live-table.js': [join(page, 'live-table.js'), 'text/javascript'],
  // The unmodified client, as its package contains it.
  '/supabase.js': [join(client, '../umd/supabase.js'), 'text/javascript'],
}
const { origin } = new URL(url)
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
  `connect-src 'self' ${origin} ${origin.replace('http', 'ws')}; ` +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** Signs a new user in. An app does this after a password, a passkey or a link that it has sent. */
function signIn(): object {
  const userId = randomUUID()
  const token = userToken(keys.jwt_secret, userId, tokenSeconds)
  return { url, key: keys.publishable_key, user_id: userId, token }
}

async function serve(method: string, path: string, response: ServerResponse): Promise<void> {
  const headers = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' }
  if (method === 'POST' && path === '/session') {
    response.writeHead(200, { ...headers, 'content-type': 'application/json' }).end(JSON.stringify(signIn()))
    return
  }
  const [file, type] = files[path] ?? []
  if (method !== 'GET' || file === undefined) response.writeHead(404, headers).end('This page does not exist.')
  else
    response
      .writeHead(200, { ...headers, 'content-type': `${type}; charset=utf-8`, 'content-security-policy': policy })
      .end(await readFile(file))
}

const server = createServer((request, response) => {
  serve(request.method ?? '', (request.url ?? '').split('?')[0] ?? '', response).catch((error: unknown) => {
    console.error(error)
    response.destroy()
  })
})
server.listen(Number(options.port), '127.0.0.1', () => {
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : options.port
  console.log(`
Open http://127.0.0.1:${port} in two windows. To see a task arrive in both, insert one in another terminal:

  curl ${url}/rest/v1/tasks -H 'Authorization: Bearer ${keys.secret_key}' \\
    -H 'Content-Type: application/json' -d '{"title":"water the plants"}'

Ctrl+C stops the page and deletes the tenant.`)
})
server.on(
  'error',
  (error) => void stop(`The page cannot be served: ${error.message}. Choose another port with --port.`),
)

let isStopping = false
/** Deletes the tenant and ends the program. */
async function stop(failure?: string): Promise<void> {
  if (isStopping) return
  isStopping = true
  server.close()
  server.closeAllConnections()
  if (failure !== undefined) console.error(failure)
  await send('DELETE', `${controlUrl}/v1/tenants/${tenant.tenant_id}?purge=true`, platformKey)
  console.log(`deleted the tenant ${tenant.name}`)
  process.exit(failure === undefined ? 0 : 1)
}
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => void stop())
