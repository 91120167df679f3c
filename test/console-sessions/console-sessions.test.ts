// Sessions of the web console: sign-in with a platform key, rights, CSRF, expiry, revocation, and guesses of keys.
import t, { type Test } from 'tap'
import { isError, startApi, type ApiResponse } from '#test/support/control-plane/api.ts'

interface OwnSession {
  id: string
  scope: string
  key_name: string
  csrf_token: string
  platform_key_id: string
  expires_at: string
  idle_expires_at: string
  revoked_at: string | null
}

const api = await startApi(t, { control: false })
const minute = 60_000
const hour = 60 * minute

const post = (key: string, headers: Record<string, string> = {}) =>
  api.call('POST', '/v1/console-sessions', { key: null, body: { platform_key: key }, headers })

/** Signs in, and returns calls with the session's cookie. */
async function signIn(t: Test, key: string) {
  const response = await post(key, { 'x-forwarded-for': '203.0.113.1', 'user-agent': 'Browser/1.0' })
  t.same(response.status, 201)
  const [cookie = ''] = String(response.headers['set-cookie']).split(';')
  const session = response.body as OwnSession
  const call = (method: string, path: string, more: { body?: unknown; headers?: Record<string, string> } = {}) =>
    api.call(method, path, { key: null, ...more, headers: { cookie, ...more.headers } })
  const write = (method: string, path: string, body?: unknown) =>
    call(method, path, { ...(body === undefined ? {} : { body }), headers: { 'x-csrf-token': session.csrf_token } })
  return { response, session, cookie, call, write }
}

const keyBody = { name: 'from the console', scope: 'read' }

t.test('A key is exchanged for a cookie that scripts and other sites cannot use', async (t) => {
  const { response, session, call, cookie } = await signIn(t, api.keys.admin)
  t.match(response.body, {
    scope: 'admin',
    key_name: 'first admin key',
    tenant_id: null,
    region: null,
    address: '203.0.113.1',
    user_agent: 'Browser/1.0',
    revoked_at: null,
  })
  const header = String(response.headers['set-cookie'])
  for (const attribute of ['HttpOnly', 'SameSite=Strict', 'Path=/']) t.match(header, attribute)
  t.notMatch(header, 'Secure', 'a console without TLS works')
  const overTls = await post(api.keys.admin, { origin: 'https://console.example' })
  t.match(String(overTls.headers['set-cookie']), 'Secure')
  t.notMatch(response.text + header, api.keys.admin.slice(10), 'the response has no part of the key')
  const token = cookie.split('=')[1] ?? ''
  const rows = JSON.stringify(await api.sql('select * from console_sessions'))
  t.notMatch(rows, token, 'only a hash of the token is stored')
  t.notMatch(rows, session.csrf_token)
  t.match(await call('GET', '/v1/console-sessions/current'), {
    status: 200,
    body: { id: session.id, csrf_token: session.csrf_token },
  })
  t.notOk(api.log.some((line) => line.includes(token) || line.includes(api.keys.admin)))
  const [entry] = (
    (await api.call('GET', '/v1/audit?limit=2')).body as { entries: { action: string; target: string }[] }
  ).entries.slice(1)
  t.match(entry, { action: 'console_session.create', target: session.id })
})

t.test('A session has the scope of its key', async (t) => {
  const billing = await signIn(t, api.keys.billing)
  t.same((await billing.call('GET', '/v1/tenants')).status, 200)
  isError(t, await billing.call('GET', '/v1/operations'), 403, 'WRONG_SCOPE', 'billing', 'operations')
  isError(t, await billing.call('GET', '/v1/console-sessions'), 403, 'WRONG_SCOPE', 'billing', 'sessions')
  const key = await api.call('GET', '/v1/console-sessions/current')
  isError(t, key, 404, 'CONSOLE_SESSION_NOT_FOUND', 'platform key', 'a key is not a session')
})

t.test('A write needs the CSRF token of its session, and a page of the same origin', async (t) => {
  const { session, call, write } = await signIn(t, api.keys.admin)
  const other = await signIn(t, api.keys.admin)
  const before = await api.counts()
  for (const token of [undefined, '', 'x', other.session.csrf_token, session.csrf_token.toLowerCase()]) {
    const headers = token === undefined ? {} : { 'x-csrf-token': token }
    const response = await call('POST', '/v1/keys', { body: keyBody, headers })
    isError(t, response, 403, 'CSRF_REJECTED', 'x-csrf-token', `token ${String(token)}`)
  }
  for (const site of ['cross-site', 'same-site', 'none']) {
    const headers = { 'x-csrf-token': session.csrf_token, 'sec-fetch-site': site }
    const response = await call('DELETE', '/v1/console-sessions/current', { headers })
    isError(t, response, 403, 'CSRF_REJECTED', 'another origin', site)
    isError(
      t,
      await post(api.keys.admin, { 'sec-fetch-site': site }),
      403,
      'CSRF_REJECTED',
      'origin',
      `sign-in ${site}`,
    )
  }
  t.same(await api.counts(), before, 'nothing was written')
  t.same((await write('POST', '/v1/keys', keyBody)).status, 201)
  const form = await api.call('POST', '/v1/console-sessions', {
    key: null,
    payload: `platform_key=${api.keys.admin}`,
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })
  isError(t, form, 415, 'UNSUPPORTED_MEDIA_TYPE', 'JSON', 'a form of another site cannot sign in')
})

t.test('A sign-out, a revocation and the end of the key end a session at once', async (t) => {
  const isEnded = (response: ApiResponse, code = 'SESSION_ENDED') =>
    isError(t, response, 401, code, code === 'SESSION_ENDED' ? 'Sign in again' : 'revoked', code)
  const first = await signIn(t, api.keys.admin)
  const out = await first.write('DELETE', '/v1/console-sessions/current')
  t.same(out.status, 204)
  t.match(String(out.headers['set-cookie']), 'Max-Age=0')
  isEnded(await first.call('GET', '/v1/tenants'))

  const admin = await signIn(t, api.keys.admin)
  const second = await signIn(t, api.keys.read)
  t.match(await admin.write('DELETE', `/v1/console-sessions/${second.session.id}`), {
    status: 200,
    body: { id: second.session.id, revoked_at: String },
  })
  isEnded(await second.call('GET', '/v1/tenants'))
  for (const id of ['00000000-0000-0000-0000-000000000000', 'x'])
    isError(
      t,
      await admin.write('DELETE', `/v1/console-sessions/${id}`),
      404,
      'CONSOLE_SESSION_NOT_FOUND',
      'console',
      id,
    )

  const key = await api.newKey('read')
  const third = await signIn(t, key.key)
  t.same((await api.call('DELETE', `/v1/keys/${key.id}`)).status, 200)
  isEnded(await third.call('GET', '/v1/tenants'), 'REVOKED_KEY')
  const { console_sessions: listed } = (await admin.call('GET', '/v1/console-sessions')).body as {
    console_sessions: OwnSession[]
  }
  t.match(
    listed.find(({ id }) => id === second.session.id),
    { revoked_at: String },
    'an ended session is listed',
  )
  const unknown = await api.call('GET', '/v1/tenants', {
    key: null,
    headers: { cookie: `tenantry_console=${'x'.repeat(43)}` },
  })
  isEnded(unknown)
  const malformed = await api.call('GET', '/v1/tenants', { key: null, headers: { cookie: 'tenantry_console=x' } })
  isError(t, malformed, 401, 'MISSING_KEY', 'Authorization', 'a malformed cookie')
})

t.test('A session ends 2 hours after its last use, and 12 hours after the sign-in in any case', async (t) => {
  t.teardown(() => (api.clock.ahead = 0))
  const idle = await signIn(t, api.keys.read)
  const used = await signIn(t, api.keys.read)
  const background = await signIn(t, api.keys.read)
  t.same(Date.parse(used.session.expires_at) - Date.parse(used.session.idle_expires_at), 10 * hour)
  for (let hours = 1; hours < 12; hours++) {
    api.clock.ahead = hours * hour
    t.same((await used.call('GET', '/v1/plans')).status, 200, `in use after ${hours} h`)
    if (hours === 1) t.same((await background.call('HEAD', '/v1/changes')).status, 200)
    if (hours === 1) t.same((await idle.call('GET', '/v1/plans')).status, 200)
  }
  for (const session of [idle, background])
    isError(t, await session.call('GET', '/v1/plans'), 401, 'SESSION_ENDED', 'ended', 'idle')
  api.clock.ahead = 12 * hour
  isError(t, await used.call('GET', '/v1/plans'), 401, 'SESSION_ENDED', 'ended', 'after 12 h')

  api.clock.ahead = 0
  const key = await api.newKey('read')
  await api.call('POST', `/v1/keys/${key.id}/rotate`, { body: { overlap_seconds: 3600 } })
  const short = await signIn(t, key.key)
  api.clock.ahead = hour + minute
  isError(t, await short.call('GET', '/v1/plans'), 401, 'SESSION_ENDED', 'ended', 'the key expired')

  api.clock.ahead = 8 * 24 * hour
  await signIn(t, api.keys.read)
  const rows = await api.sql('select id from console_sessions where id = $1', [used.session.id])
  t.same(rows, [], 'a week after its end it is removed')
})

t.test('A stream of changes does not keep a session from ending as idle', async (t) => {
  t.teardown(() => (api.clock.ahead = 0))
  const { call } = await signIn(t, api.keys.read)
  api.clock.ahead = hour
  t.same((await call('HEAD', '/v1/changes')).status, 200)
  t.same((await call('GET', '/v1/plans', { headers: { 'x-console-background': '1' } })).status, 200)
  api.clock.ahead = 2 * hour + minute
  isError(t, await call('GET', '/v1/plans'), 401, 'SESSION_ENDED', 'ended', 'idle')
})

t.test(
  'After three failed attempts, an address waits twice as long each time, and other addresses do not',
  async (t) => {
    t.teardown(() => (api.clock.ahead = 0))
    const from = (address: string) => ({ 'x-forwarded-for': `198.51.100.200, ${address}` })
    const guess = () => post('tnp_wrong', from('203.0.113.9'))
    for (let attempt = 1; attempt <= 3; attempt++)
      isError(t, await guess(), 401, 'INVALID_KEY', 'unknown', `attempt ${attempt}`)
    isError(t, await guess(), 401, 'INVALID_KEY', 'unknown', 'attempt 4')
    for (const seconds of [2, 4, 8, 16]) {
      const blocked = await post(api.keys.admin, from('203.0.113.9'))
      isError(t, blocked, 429, 'TOO_MANY_ATTEMPTS', `${seconds} s`, `wait of ${seconds} s`)
      t.same(blocked.headers['retry-after'], String(seconds), 'also the right key waits')
      t.same((await post(api.keys.read, from('203.0.113.10'))).status, 201, 'another address')
      api.clock.ahead += seconds * 1000
      isError(t, await guess(), 401, 'INVALID_KEY', 'unknown', 'the next attempt')
    }
    api.clock.ahead += 32_000
    t.same((await post(api.keys.admin, from('203.0.113.9'))).status, 201)
    isError(t, await guess(), 401, 'INVALID_KEY', 'unknown', 'a sign-in ends the waits')
    isError(t, await guess(), 401, 'INVALID_KEY', 'unknown', 'a sign-in ends the waits')
  },
)
