// Builds tokens as attackers would, and sends requests with them to each kind of route.
import { createHmac, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import type { Test } from 'tap'
import { send, signToken, startRuntime, type TestTenant } from '#test/support/runtime.ts'

export const routes: [method: string, path: string, body?: object][] = [
  ['GET', '/storage/v1/bucket'],
  ['GET', '/rest/v1/notes'],
  ['POST', '/rest/v1/notes', { text: 'forged' }],
  ['PATCH', '/rest/v1/notes?text=not.is.null', { text: 'forged' }],
  ['DELETE', '/rest/v1/notes?text=not.is.null'],
  ['POST', '/rest/v1/schemas', { name: 'forged', fields: [{ name: 'id', type: 'uuid', primary: true }] }],
  ['POST', '/admin/reload-schemas'],
  ['POST', '/storage/v1/bucket', { name: 'forged', policy: 'public' }],
  ['GET', '/storage/v1/object/papers/letter.txt'],
  ['POST', '/storage/v1/object/papers/forged.txt', { text: 'forged' }],
  ['DELETE', '/storage/v1/object/papers/letter.txt'],
  ['POST', '/storage/v1/object/sign/papers/letter.txt?expires_in=60'],
  ['GET', '/functions/v1'],
  ['POST', '/functions/v1/invoke/greet', { name: 'forged' }],
  ['GET', '/events/v1'],
  ['GET', '/health'],
]

export const part = (value: unknown) =>
  Buffer.from(typeof value === 'string' || Buffer.isBuffer(value) ? value : JSON.stringify(value)).toString('base64url')
export const hmac = (text: string, secret: string | Buffer) =>
  createHmac('sha256', secret).update(text).digest('base64url')
/** Signs exactly these texts. */
export const signed = (header: string, payload: string, secret: string | Buffer) =>
  `${header}.${payload}.${hmac(`${header}.${payload}`, secret)}`
export const hs256 = { alg: 'HS256', typ: 'JWT' }

/** Replaces the last base64url letter by one for the same bytes with unused bits set. */
export function withStrayBits(text: string): string {
  const bytes = Buffer.from(text, 'base64url')
  for (const letter of 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'.split('')) {
    const other = text.slice(0, -1) + letter
    if (other !== text && Buffer.from(other, 'base64url').equals(bytes)) return other
  }
  throw new Error('its last letter has no unused bits')
}

/**
 * Starts a runtime with two tenants, valid tokens of the first, and functions that send and count requests with forged
 * tokens.
 */
export async function openForger(t: Test) {
  const runtime = await startRuntime(t)
  // Stops the clock, so that claims that differ by a second keep their meaning.
  runtime.clock.stopped = Date.now()
  const secret = randomBytes(32).toString('hex')
  const former = randomBytes(32).toString('hex')
  const tenant = await runtime.addTenant({ name: 'acme', jwtSecrets: [secret, former] })
  const other = await runtime.addTenant({ name: 'other' })
  const now = () => Math.floor(runtime.clock.now() / 1000)
  const good = (more: Record<string, unknown> = {}) => ({
    sub: 'ada',
    role: 'authenticated',
    exp: now() + 3600,
    ...more,
  })
  const without = (name: string) => Object.fromEntries(Object.entries(good()).filter(([key]) => key !== name))
  const wellSigned = (claims: unknown, header: Record<string, unknown> = hs256) => signToken(claims, secret, header)

  const notes = {
    name: 'notes',
    fields: [
      { name: 'text', type: 'string' },
      { name: 'owner', type: 'string' },
    ],
    rls_policy: { type: 'ownership', owner_field: 'owner' },
  }
  for (const [path, as, body] of [
    ['/rest/v1/schemas', 'service', notes],
    ['/admin/reload-schemas', 'service', undefined],
    ['/rest/v1/notes', 'ada', { text: 'of ada' }],
    ['/storage/v1/bucket', 'ada', { name: 'papers', policy: 'private' }],
    ['/storage/v1/object/papers/letter.txt', 'ada', { text: 'of ada' }],
  ] as const) {
    const { status, text } = await tenant.request('POST', path, { as, ...(body === undefined ? {} : { body }) })
    t.ok(status < 300, text)
  }
  const stored = () =>
    tenant.rows(
      `select (select json_agg(n order by n) from notes n)::text as notes,
         (select json_agg(path) from storage_objects)::text as objects,
         (select json_agg(name order by name) from storage_buckets)::text as buckets,
         (select count(*) from schemas) as schemas, (select count(*) from event_log) as events,
         (select count(*) from function_invocations) as invocations`,
    )

  const all = { requests: 0, rejections: 0 }
  /**
   * Returns undefined if the request is rejected with the standard 401, and otherwise the response. It does not read
   * other responses, because an accepted subscription never ends by itself.
   */
  const rejection = async (
    at: TestTenant,
    [method, path, body]: (typeof routes)[number],
    headers: Record<string, string | string[]>,
  ): Promise<string | undefined> => {
    all.requests++
    const outgoing = request({
      host: '127.0.0.1',
      port: at.port,
      agent: false,
      method,
      path,
      headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    })
    outgoing.on('error', () => undefined)
    outgoing.end(body === undefined ? undefined : JSON.stringify(body))
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage]
    if (response.statusCode !== 401) {
      response.destroy()
      return `${method} ${path}: ${response.statusCode}`
    }
    let text = ''
    for await (const chunk of response.setEncoding('utf8') as AsyncIterable<string>) text += chunk
    const { code } = JSON.parse(text) as Record<string, unknown>
    const codes = path.startsWith('/rest/v1') ? ['PGRST301', 'PGRST303'] : ['INVALID_TOKEN']
    if (!codes.includes(String(code)) || response.headers['www-authenticate'] !== 'Bearer')
      return `${method} ${path}: ${text}`
    all.rejections++
    return undefined
  }
  /**
   * Checks that every token is rejected at the selected routes, without a statement or a change. It sends a valid token
   * first, so that a cached result of that token would be detected.
   */
  const rejected = async (
    t: Test,
    at: TestTenant,
    tokens: Record<string, string | string[]>,
    where: (n: number) => typeof routes = () => routes,
  ) => {
    await send(tenant.port, 'GET', '/storage/v1/bucket', { authorization: `Bearer ${wellSigned(good())}` })
    const before = { statements: at.statements(), stored: await stored() }
    let n = 0
    for (const [why, token] of Object.entries(tokens)) {
      const accepted: string[] = []
      for (const route of where(n++)) {
        const outcome = await rejection(at, route, { authorization: Array.isArray(token) ? token : `Bearer ${token}` })
        if (outcome !== undefined) accepted.push(outcome)
      }
      t.same(accepted, [], why)
    }
    t.equal(at.statements(), before.statements, 'no SQL')
    t.same(await stored(), before.stored, 'nothing was changed')
  }
  return { runtime, secret, former, tenant, other, now, good, without, wellSigned, all, rejection, rejected }
}
