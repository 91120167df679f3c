// A forged request changes a bill only by what it transfers. Each request that reaches a runtime counts once, with its
// bytes, for the tenant that it reaches. A request that reaches none costs only the response that the gateway sent.
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Route } from '@tenantry/contract'
import t from 'tap'
import { until } from '#test/support/until.ts'
import { sendRaw, startSetting, token } from './support/gateway.ts'

interface Forgery {
  what: string
  /** Sent as is. `ours` is the tenant of the client, and `theirs` a tenant that the client may want to charge. */
  bytes: (ours: Route, theirs: Route) => string
  waitFor?: RegExp
  /** The requests that count, those that reach the runtime, and the bytes of their responses' bodies, for each tenant. */
  ours: [requests: number, reached: number, bytes: number]
  theirs?: [requests: number, reached: number, bytes: number]
  /** Rejected requests of `ours`, which cost nothing. The default is 0. */
  rejected?: number
}

const get = (path: string, headers = '', method = 'GET') => `${method} ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`
const last = 'Connection: close\r\n'
const on = (route: Route, path: string, headers = '', method = 'GET') => get(`/t/${route.name}${path}`, headers, method)
const wasRejected = (code: string) => new RegExp(`"${code}"`)
const wanted = ({ tenant_id: id }: Route) =>
  [
    'X-Tenantry-Tenant',
    'x-tenantry-tenant',
    'X-TENANTRY-TENANT',
    'X_Tenantry_Tenant',
    'x-tenantry-base-path',
    'x-tenantry-internal',
    'X-Tenantry-Meter',
    'X-Forwarded-Host',
    'Forwarded',
    'X-Original-URL',
    'X-Rewrite-URL',
    'X-HTTP-Method-Override',
    'X-Original-Host',
  ]
    .map((name) => `${name}: ${/internal/i.test(name) ? token : /host/i.test(name) ? 'theirs.localhost' : id}\r\n`)
    .join('')

const forgeries: Forgery[] = [
  { what: 'one request', bytes: (ours) => on(ours, '/bytes/100', last), ours: [1, 1, 100] },
  {
    what: 'five on one connection at once',
    bytes: (ours) => on(ours, '/bytes/100').repeat(4) + on(ours, '/bytes/100', last),
    ours: [5, 5, 500],
  },
  {
    what: 'for two tenants in turn',
    bytes: (ours, theirs) => on(ours, '/bytes/10') + on(theirs, '/bytes/1000') + on(ours, '/bytes/10', last),
    ours: [2, 2, 20],
    theirs: [1, 1, 1_000],
  },
  {
    what: 'some behind the last',
    bytes: (ours) => on(ours, '/bytes/10', last) + on(ours, '/bytes/10').repeat(3),
    ours: [1, 1, 0],
  },
  {
    what: 'empty lines between them',
    bytes: (ours) => `\r\n\r\n${on(ours, '/bytes/10')}\r\n${on(ours, '/bytes/10', last)}`,
    ours: [2, 2, 20],
  },
  { what: 'HEAD', bytes: (ours) => on(ours, '/bytes/100', last, 'HEAD'), ours: [1, 1, 0] },
  { what: 'OPTIONS', bytes: (ours) => on(ours, '/bytes/7', last, 'OPTIONS'), ours: [1, 1, 7] },
  {
    what: 'a preflight',
    bytes: (ours) =>
      on(
        ours,
        '/status/204',
        `Origin: https://a.example\r\nAccess-Control-Request-Method: PATCH\r\n${last}`,
        'OPTIONS',
      ),
    ours: [1, 1, 0],
  },
  { what: 'a method of its own', bytes: (ours) => on(ours, '/bytes/9', last, 'PROPFIND'), ours: [1, 1, 9] },
  { what: 'HTTP/1.0', bytes: (ours) => `GET /t/${ours.name}/bytes/12 HTTP/1.0\r\nHost: x\r\n\r\n`, ours: [1, 1, 12] },
  {
    what: 'a body in chunks',
    bytes: (ours) =>
      `${on(ours, '/echo', `Transfer-Encoding: chunked\r\n${last}`, 'POST')}3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n`,
    ours: [1, 1, 5],
  },
  {
    what: 'a request within a body',
    bytes: (ours, theirs) => {
      const inner = on(theirs, '/bytes/999')
      return on(ours, '/bytes/10', `Content-Length: ${inner.length}\r\n${last}`, 'POST') + inner
    },
    ours: [1, 1, 10],
  },
  {
    what: 'a body that is waited for',
    bytes: (ours) => `${on(ours, '/echo', `Expect: 100-continue\r\nContent-Length: 4\r\n${last}`, 'POST')}abcd`,
    ours: [1, 1, 4],
  },
  {
    what: 'a body that is rejected before it comes',
    bytes: (ours) => on(ours, '/early', `Expect: 100-continue\r\nContent-Length: 4000\r\n`, 'POST'),
    waitFor: /too large/,
    ours: [1, 1, 9],
  },
  {
    what: 'an upload that breaks off',
    bytes: (ours) => `${on(ours, '/early', 'Content-Length: 4000\r\n', 'POST')}abc`,
    waitFor: /too large/,
    ours: [1, 1, 9],
  },
  {
    what: 'half a head',
    bytes: (ours) => on(ours, '/bytes/10') + on(ours, '/bytes/10').slice(0, -2),
    waitFor: /\r\n\r\n.{10}$/s,
    ours: [1, 1, 10],
  },
  {
    what: 'an absolute target',
    bytes: (ours) =>
      `GET http://${ours.name}.localhost/bytes/10 HTTP/1.1\r\nHost: ${ours.name}.localhost\r\n${last}\r\n`,
    ours: [1, 1, 10],
  },
  {
    what: "an absolute target of the other's, our Host",
    bytes: (ours, theirs) =>
      `GET http://${theirs.name}.localhost/bytes/10 HTTP/1.1\r\nHost: ${ours.name}.localhost\r\n\r\n`,
    waitFor: wasRejected('INVALID_TARGET'),
    ours: [0, 0, 0],
  },
  {
    what: "our Host, the other's path",
    bytes: (ours, theirs) => `GET /t/${theirs.name}/bytes/10 HTTP/1.1\r\nHost: ${ours.name}.localhost\r\n${last}\r\n`,
    ours: [1, 1, 10],
  },
  {
    what: 'a Host in capitals, with a dot and a port',
    bytes: (ours) => `GET /bytes/10 HTTP/1.1\r\nHost: ${ours.name.toUpperCase()}.LocalHost.:8080\r\n${last}\r\n`,
    ours: [1, 1, 10],
  },
  {
    what: 'two Hosts',
    bytes: (ours, theirs) =>
      `GET /bytes/10 HTTP/1.1\r\nHost: ${ours.name}.localhost\r\nHost: ${theirs.name}.localhost\r\n\r\n`,
    waitFor: wasRejected('INVALID_HOST'),
    ours: [0, 0, 0],
  },
  {
    what: "headers that name the other and guess the parts' token",
    bytes: (ours, theirs) => on(ours, '/bytes/10', wanted(theirs) + last),
    ours: [1, 1, 10],
  },
  {
    what: 'headers that Connection takes away',
    bytes: (ours) =>
      on(ours, '/bytes/10', 'Connection: close, x-tenantry-tenant, x-tenantry-internal, host, content-length\r\n'),
    ours: [1, 1, 10],
  },
  {
    what: "the parts' own paths at no tenant's address",
    bytes: () => get('/internal/v1/usage', `X-Tenantry-Internal: ${token}\r\nContent-Length: 0\r\n${last}`, 'POST'),
    waitFor: wasRejected('NOT_FOUND'),
    ours: [0, 0, 0],
  },
  ...[
    '/internal/v1/usage',
    '//internal/v1/usage',
    '/INTERNAL/v1/leases',
    '/%69nternal/v1/usage',
    '/%2569nternal/v1/usage',
    '/rest/../internal/v1/usage',
    '/rest/%2e%2e/internal/v1/usage',
    '/./internal/v1/usage',
    '/\\internal/v1/usage',
    '/internal;x/v1/usage',
  ].map((path): Forgery => ({
    what: `the parts' own paths: ${path}`,
    bytes: (ours) => on(ours, path, `X-Tenantry-Internal: ${token}\r\nContent-Length: 2\r\n${last}`, 'POST') + '{}',
    waitFor: wasRejected('NOT_FOUND'),
    ours: [0, 0, 0],
    rejected: 1,
  })),
  {
    what: 'a length given twice',
    bytes: (ours) =>
      on(ours, '/sink', 'Content-Length: 0\r\nContent-Length: 50\r\n', 'POST') + on(ours, '/bytes/10', last),
    waitFor: wasRejected('MALFORMED_REQUEST'),
    ours: [0, 0, 0],
  },
  {
    what: 'a length and chunks',
    bytes: (ours) =>
      `${on(ours, '/sink', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n', 'POST')}0\r\n\r\n${on(ours, '/bytes/10', last)}`,
    waitFor: wasRejected('MALFORMED_REQUEST'),
    ours: [0, 0, 0],
  },
  {
    what: 'an upgrade that passes bytes',
    bytes: (ours, theirs) =>
      on(ours, '/raw', 'Connection: Upgrade\r\nUpgrade: raw\r\n') + on(theirs, '/bytes/999') + 'the end',
    waitFor: /the end$/,
    ours: [1, 1, -1],
  },
  {
    what: 'an upgrade that is rejected',
    bytes: (ours) => on(ours, '/denied', 'Connection: Upgrade\r\nUpgrade: raw\r\n'),
    ours: [1, 1, 2],
  },
  {
    what: 'an upgrade to HTTP/2',
    bytes: (ours) =>
      on(
        ours,
        '/bytes/10',
        'Connection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n',
      ),
    ours: [1, 1, 10],
  },
  {
    what: 'an upgrade behind another request',
    bytes: (ours) => on(ours, '/bytes/10') + on(ours, '/raw', 'Connection: Upgrade\r\nUpgrade: raw\r\n'),
    ours: [1, 1, 0],
  },
  {
    what: 'a tunnel',
    bytes: (ours) =>
      `CONNECT ${ours.name}.localhost:80 HTTP/1.1\r\nHost: ${ours.name}.localhost\r\n\r\n${on(ours, '/bytes/10', last)}`,
    ours: [0, 0, 0],
  },
]

t.test('A forged request counts only for the tenant that it reaches', { timeout: 60_000 }, async (t) => {
  const setting = await startSetting(t)
  const { gateway, upstream, control } = setting
  const outcomes: { what: string; route: Route; text: string; expected: [number, number, number]; rejected: number }[] =
    []
  for (const [n, forgery] of forgeries.entries()) {
    const [ours, theirs] = [await setting.add(`ours-${n}`), await setting.add(`theirs-${n}`)]
    const text = await sendRaw(
      gateway.port,
      forgery.bytes(ours, theirs),
      forgery.waitFor === undefined ? {} : { waitFor: forgery.waitFor },
    )
    outcomes.push(
      { what: forgery.what, route: ours, text, expected: forgery.ours, rejected: forgery.rejected ?? 0 },
      { what: `${forgery.what}: the other`, route: theirs, text, expected: forgery.theirs ?? [0, 0, 0], rejected: 0 },
    )
  }
  const pushed = control.pushes.length
  await until(() => upstream.open === 0, 'the end of all requests')
  await gateway.stop()
  t.ok(control.pushes.length > pushed)
  for (const {
    what,
    route,
    text,
    expected: [requests, reached, bytes],
    rejected,
  } of outcomes) {
    const total = (meter: string) =>
      control.total((counter) => counter.tenant_id === route.tenant_id && counter.meter === meter)
    t.equal(total('requests'), requests, what)
    t.equal(
      upstream.seen.filter(({ headers }) => headers['x-tenantry-tenant'] === route.tenant_id).length,
      reached,
      `${what}: requests that reached the runtime`,
    )
    // Below zero stands for all bytes that arrived, which an upgrade passes unchanged.
    const body = text.slice(text.indexOf('\r\n\r\n') + 4)
    t.equal(total('egress_bytes'), bytes < 0 ? body.length : bytes, what)
    t.equal(total('rejected_requests'), rejected, what)
    t.equal(total('refused_requests'), 0, what)
  }
  t.equal(
    upstream.seen.filter(
      ({ headers }) => !outcomes.some(({ route }) => route.tenant_id === headers['x-tenantry-tenant']),
    ).length,
    0,
    'nothing reached the runtime for another tenant',
  )
  t.equal(upstream.seen.filter(({ url }) => url.includes('internal') || url.includes('999')).length, 0)
  t.same(new Set(control.pushes.map(({ source }) => source)), new Set(['gateway-test-0']))
})

t.test('Clients that leave before their request has ended leave no timer', async (t) => {
  const setting = await startSetting(t)
  const route = await setting.add('leavers')
  const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length
  const before = timers()
  for (let n = 0; n < 20; n++)
    await sendRaw(setting.gateway.port, `${on(route, '/early', 'Content-Length: 4000\r\n', 'POST')}abc`, {
      waitFor: /too large/,
    })
  await until(() => setting.upstream.open === 0 && timers() < before + 10, 'the end of their timers')
})

t.test(
  'A response that its client aborts costs at least what the client received, and at most the whole',
  async (t) => {
    const setting = await startSetting(t)
    const route = await setting.add('leaver')
    const whole = 20_000_000
    let received = 0
    for (const minBytes of [0, 1, 100_000, 5_000_000]) {
      const socket = connect(setting.gateway.port, '127.0.0.1')
      socket.on('error', () => undefined)
      const closed = once(socket, 'close')
      let here = 0
      socket.on('data', (chunk: Buffer) => {
        here += chunk.length
        if (here > minBytes) socket.destroy()
      })
      socket.write(on(route, `/bytes/${whole}`))
      await closed
      received += here
    }
    await until(() => setting.upstream.open === 0, 'the end of all requests')
    await setting.gateway.stop()
    const total = (meter: string) =>
      setting.control.total((counter) => counter.tenant_id === route.tenant_id && counter.meter === meter)
    t.equal(total('requests'), 4)
    // Heads do not count as egress.
    t.ok(total('egress_bytes') >= received - 4 * 1_000, `${total('egress_bytes')} of ${received}`)
    t.ok(total('egress_bytes') <= 4 * whole)
  },
)
