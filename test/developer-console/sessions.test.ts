// Sessions of the developers' console: the sign-in with the secret key, the cookie's limits, CSRF, expiry and the sign-out.
import t from 'tap'
import { until } from '#test/support/until.ts'
import { EventReader } from '#test/support/event-reader.ts'
import { startRuntime, type ApiResponse } from '#test/support/runtime.ts'

const heartbeat = 100
const runtime = await startRuntime(t, {
  pace: { heartbeat, timeout: 20_000, drainTimeout: 20_000, retryDelay: 50 },
})
const tenant = await runtime.addTenant()
const other = await runtime.addTenant({ name: 'other' })
const path = '/console/v1/session'
const json = { 'content-type': 'application/json' }

/** The parts of a response to compare. */
function brief({ status, headers, text }: ApiResponse) {
  return { status, headers, json: text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : undefined }
}

async function signIn(key = tenant.secretKey, headers: Record<string, string> = {}) {
  const response = await tenant.request('POST', path, {
    headers: { ...json, ...headers },
    body: JSON.stringify({ service_key: key }),
  })
  const [cookie = ''] = [response.headers['set-cookie'] ?? []].flat()
  const body = response.json() as { csrf_token: string; code?: string }
  const [pair = ''] = cookie.split(';')
  return { response, cookie, body, session: { cookie: pair, 'x-csrf-token': body.csrf_token } }
}

t.test('The secret key becomes a cookie that contains no part of it', async (t) => {
  const { response, cookie, body } = await signIn()
  t.same(response.status, 201)
  t.match(body, { tenant_id: tenant.id, tenant_name: 'acme', csrf_token: /^[\w-]{43}$/ })
  t.match(
    cookie,
    new RegExp(`^tenantry_developer_${tenant.id}=[\\w-]+\\.[\\w-]{43}; Path=/; HttpOnly; SameSite=Strict;`),
  )
  t.notMatch(cookie, 'Secure')
  const sealed = Buffer.from(cookie.split('=')[1] ?? '', 'base64url').toString('latin1')
  for (const text of [cookie, sealed, response.text]) t.notOk(text.includes(tenant.secretKey.slice(10, 20)))
  t.match((await signIn(tenant.secretKey, { origin: 'https://acme.test' })).cookie, '; Secure')
})

t.test('Only the secret key signs in; the publishable key, a token and the key of another tenant do not', async (t) => {
  const texts = ['tn_secret_wrong', tenant.publishableKey]
  for (const text of texts) {
    const { response, body, cookie } = await signIn(text, { 'x-forwarded-for': `10.0.0.${texts.indexOf(text)}` })
    t.same([response.status, body.code, cookie], [401, 'INVALID_KEY', ''])
    t.same(response.headers['x-tenantry-rejected'], '1', 'free for the tenant')
  }
  for (const [nth, text] of [tenant.token('ada'), other.secretKey].entries())
    t.same((await signIn(text, { 'x-forwarded-for': `10.0.1.${nth}` })).response.status, 401)
  t.same((await tenant.request('POST', path, { headers: json, body: '{}' })).status, 400)
})

t.test('The session with its CSRF token has the rights of the service role; the cookie alone has none', async (t) => {
  const { session } = await signIn()
  const { cookie } = session
  t.same((await tenant.request('GET', '/rest/v1/schemas', { headers: session })).status, 200)
  const read = await tenant.request('GET', '/storage/v1/bucket', { headers: { cookie } })
  t.same([read.status, read.list()], [200, []], 'an anonymous caller')
  const schema = JSON.stringify({ name: 'notes', fields: [{ name: 'id', type: 'uuid', primary: true }] })
  const write = (headers: Record<string, string>) =>
    tenant.request('POST', '/rest/v1/schemas', { headers: { ...json, ...headers }, body: schema })
  t.same((await write({ cookie })).status, 401)
  for (const headers of [
    { ...session, 'x-csrf-token': 'wrong' },
    { ...session, 'sec-fetch-site': 'same-site' },
    { ...session, 'sec-fetch-site': 'cross-site' },
  ])
    t.match(brief(await write(headers)), { status: 403, json: { code: 'CSRF_REJECTED' } })
  t.same((await write({ ...session, 'sec-fetch-site': 'same-origin' })).status, 201)
})

t.test('A page that is loaded again reads its session; a page of another origin does not', async (t) => {
  const { session, body } = await signIn()
  const { cookie } = session
  const own = await tenant.request('GET', path, { headers: { cookie } })
  t.match(brief(own), { status: 200, json: { csrf_token: body.csrf_token, tenant_name: 'acme' } })
  t.same(own.headers['cache-control'], 'no-store')
  t.same((await tenant.request('GET', path, { headers: { cookie, 'sec-fetch-site': 'same-site' } })).status, 403)
  t.match(brief(await tenant.request('GET', path)), { status: 401, json: { code: 'UNAUTHORIZED' } })
  // A browser gives a script of another origin no response to a request with credentials that lacks this header.
  const cross = await tenant.request('GET', path, { headers: { cookie, origin: 'http://attacker.test' } })
  t.same(cross.headers['access-control-allow-credentials'], undefined)
})

t.test('Another tenant does not accept the session', async (t) => {
  const { session } = await signIn()
  const [, value = ''] = session.cookie.split('=', 2)
  for (const cookie of [session.cookie, `tenantry_developer_${other.id}=${value}`])
    t.match(brief(await other.request('GET', '/rest/v1/schemas', { headers: { ...session, cookie } })), {
      status: 401,
      json: { code: 'SESSION_ENDED' },
    })
})

t.test('SQL of the tenant sees neither the session nor those of other tenants', async (t) => {
  const { session } = await signIn()
  await tenant.rows(`create function ${tenant.id}.seen() returns json stable language sql as $$ select json_build_object(
    'cookies', current_setting('request.cookies', true), 'headers', current_setting('request.headers', true)) $$`)
  await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })
  const cookie = `theme=dark; ${session.cookie}; tenantry_developer_${other.id}=x`
  const response = await tenant.request('GET', '/rest/v1/rpc/seen', { headers: { ...session, cookie } })
  t.same(response.status, 200)
  t.match(response.text, 'theme')
  t.notMatch(response.text, 'tenantry_developer_')
})

t.test('After three wrong keys, a client must wait longer each time; others need not', async (t) => {
  const headers = { 'x-forwarded-for': '192.0.2.7' }
  for (let attempt = 0; attempt < 4; attempt++) t.same((await signIn('wrong', headers)).response.status, 401)
  const { response } = await signIn(tenant.secretKey, headers)
  t.match(brief(response), { status: 429, json: { code: 'TOO_MANY_ATTEMPTS' }, headers: { 'retry-after': '2' } })
  t.same((await signIn(tenant.secretKey, { 'x-forwarded-for': '192.0.2.8' })).response.status, 201)
  runtime.clock.ahead += 2_001
  t.same((await signIn(tenant.secretKey, headers)).response.status, 201)
})

t.test('A session ends after two hours without a request, after twelve hours, and with its key', async (t) => {
  const use = async (session: Record<string, string>) => {
    const response = await tenant.request('GET', '/rest/v1/schemas', { headers: session })
    const [cookie] = [response.headers['set-cookie'] ?? []].flat()
    return { status: response.status, session: { ...session, ...(cookie && { cookie: cookie.split(';')[0] ?? '' }) } }
  }
  const hour = 3_600_000
  let { session }: { session: Record<string, string> } = await signIn()
  const first = session
  runtime.clock.ahead += hour
  session = (await use(session)).session
  t.not(session['cookie'], first['cookie'], 'a request extends it')
  t.same(
    (await tenant.request('GET', '/rest/v1/schemas', { headers: { ...first, 'x-console-background': '1' } })).headers[
      'set-cookie'
    ],
    undefined,
    'a request of the page itself does not',
  )
  runtime.clock.ahead += hour
  t.same((await use(first)).status, 401, 'two hours after the last request')
  for (let hours = 2; hours < 12; hours++) {
    const used = await use(session)
    t.same(used.status, 200)
    session = used.session
    runtime.clock.ahead += hour
  }
  t.same((await use(session)).status, 401, 'after twelve hours')

  const again = (await signIn()).session
  t.same((await use(again)).status, 200)
  tenant.change({ keys: tenant.manifest.keys.map((key) => ({ ...key, expires_at: '2020-01-01T00:00:00.000Z' })) })
  t.same((await use(again)).status, 401, 'the key was rotated')
  tenant.change({ keys: tenant.manifest.keys.map(({ kind, sha256 }) => ({ kind, sha256 })) })
})

t.test('A sign-out ends the session at once, and removes its cookie', async (t) => {
  const { session } = await signIn()
  const out = await tenant.request('DELETE', path, { headers: session })
  t.same(out.status, 204)
  t.match(out.headers['set-cookie'], [/^tenantry_developer_\w+=; Path=\/;.* Max-Age=0/])
  t.match(brief(await tenant.request('GET', '/rest/v1/schemas', { headers: session })), {
    status: 401,
    json: { code: 'SESSION_ENDED' },
  })
  t.same((await tenant.request('DELETE', path, { headers: { cookie: session.cookie } })).status, 401)
})

t.test('A stream of events continues past its checks of the session, and ends with the sign-out', async (t) => {
  const { session } = await signIn()
  const reader = await EventReader.open(tenant, '/events/v1', session)
  const begun = process.hrtime.bigint()
  await tenant.request('POST', '/storage/v1/bucket', {
    as: 'service',
    headers: json,
    body: JSON.stringify({ name: 'watched' }),
  })
  t.match(await reader.until(1), [{ data: { type: 'storage.bucket.created', bucket: 'watched' } }])
  await until(async () => process.hrtime.bigint() - begun > 5n * BigInt(heartbeat) * 1_000_000n, 'five heartbeats')
  t.notOk(reader.isOver)
  await tenant.request('DELETE', path, { headers: session })
  t.match((await reader.untilOver()).at(-1), { event: 'end', data: { code: 'INVALID_TOKEN' } })
})

t.test('The token for the address of a WebSocket is anonymous; only the service role gets tokens', async (t) => {
  const { session } = await signIn()
  const path = '/console/v1/realtime-token'
  t.same((await tenant.request('POST', path, { headers: { cookie: session.cookie } })).status, 401)
  const tokens = (await tenant.request('POST', path, { headers: session })).json()
  const schemas = async (token: unknown) =>
    tenant.request('GET', '/rest/v1/schemas', { headers: { authorization: `Bearer ${String(token)}` } })
  await tenant.request('POST', '/rest/v1/schemas', {
    as: 'service',
    headers: json,
    body: JSON.stringify({ name: 'seen', fields: [{ name: 'id', type: 'uuid', primary: true }] }),
  })
  t.same((await schemas(tokens['connect_token'])).text, '[]')
  t.match((await schemas(tokens['access_token'])).text, 'seen')
  runtime.clock.ahead += 900_001
  t.same((await schemas(tokens['access_token'])).status, 401)
})

t.test('The page and its files are compressed, limited to their origin, and cannot be framed', async (t) => {
  const page = await tenant.request('GET', '/console')
  t.same(page.status, 200)
  t.match(page.headers, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': /^default-src 'self';.*frame-ancestors 'none'/,
    'x-frame-options': 'DENY',
    'cache-control': 'no-cache',
  })
  t.notMatch(page.headers['content-security-policy'], 'unsafe')
  const [, script = ''] = /src="(console\/app-[^"]+\.js)"/.exec(page.text) ?? []
  for (const encoding of ['br', 'gzip']) {
    const file = await tenant.request('GET', `/${script}`, { headers: { 'accept-encoding': encoding } })
    t.match(file, { status: 200, headers: { 'content-encoding': encoding, 'cache-control': /immutable/ } })
  }
  for (const name of ['nothing.js', 'index.html.gz', '..%2f..%2fpackage.json'])
    t.same((await tenant.request('GET', `/console/${name}`)).status, 404)
  t.match(await tenant.request('GET', '/console/'), { status: 308, headers: { location: '/console' } })
})
