// Request bodies: which are rejected before they are read, how much memory all bodies may use, and how slowly they may arrive.
import { connect, type Socket } from 'node:net'
import { readFile } from 'node:fs/promises'
import t from 'tap'
import { internalPaths, internalTokenHeader, tenantHeader } from '@tenantry/contract'
import { effort } from '#test/support/effort.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { internalToken } from '#test/support/tenant-proxy.ts'
import { until } from '#test/support/until.ts'

const mebibyte = 2 ** 20
const runtime = await startRuntime(t, {
  bounds: { bodyBytes: 48 * mebibyte },
  bodyPace: { interval: 500, minBytes: 1_000, maxMilliseconds: 60_000 },
})
const acme = await runtime.addTenant({ name: 'acme' })
const other = await runtime.addTenant({ name: 'other' })
for (const tenant of [acme, other]) {
  await tenant.request('POST', '/rest/v1/schemas', {
    as: 'service',
    body: { name: 'notes', fields: [{ name: 'data', type: 'json' }], rls_policy: { type: 'authenticated' } },
  })
  const { status, text } = await tenant.request('POST', '/admin/reload-schemas', { as: 'service' })
  if (status !== 200) throw new Error(text)
}

/** A request whose body is sent by the test. */
interface SlowRequest {
  socket: Socket
  /** Resolves to the response's status and text. */
  response: Promise<{ status: number; text: string }>
}

/** Sends the head of a request to the runtime itself, without a body. */
function open(
  tenant: TestTenant,
  path: string,
  {
    as,
    length,
    address = '192.0.2.1',
    method = 'POST',
    headers = {},
  }: {
    as?: string | undefined
    length: number | undefined
    address?: string
    method?: string
    headers?: Record<string, string>
  },
): SlowRequest {
  const socket = connect(runtime.port, '127.0.0.1')
  let text = ''
  const received = new Promise<{ status: number; text: string }>((resolve) => {
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString('utf8')
      const status = /^HTTP\/1\.1 (\d+) [^]*\r\n\r\n[^]*\}$/.exec(text)?.[1]
      if (status !== undefined && status !== '100') resolve({ status: Number(status), text })
    })
    socket.on('close', () => resolve({ status: 0, text }))
  })
  socket.on('error', () => undefined)
  const lines = Object.entries({
    host: 'runtime',
    [internalTokenHeader]: internalToken,
    [tenantHeader]: tenant.id,
    'x-forwarded-for': address,
    'content-type': 'application/json',
    ...(length === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(length) }),
    ...tenant.as(as),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  t.teardown(() => socket.destroy())
  return { socket, response: received }
}

async function metric(name: string, labels: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${runtime.port}${internalPaths.metrics}`, {
    headers: { [internalTokenHeader]: internalToken },
  })
  const line = (await response.text()).split('\n').find((text) => text.startsWith(`${name}{${labels}}`))
  return Number(line?.split(' ').at(-1) ?? 0)
}
const used = () => metric('tenantry_runtime_budget_used_bytes', 'budget="bodies"')

t.test('A request that is rejected without its body is rejected before any of its body arrives', async (t) => {
  const length = 1_000
  const cases: [expected: number, code: string, request: SlowRequest][] = [
    [404, 'PGRST205', open(acme, '/rest/v1/absent', { as: 'service', length })],
    [404, 'PGRST202', open(acme, '/rest/v1/rpc/absent', { as: 'service', length })],
    [403, '42501', open(acme, '/rest/v1/functions', { as: 'service', length })],
    [403, '42501', open(acme, '/rest/v1/functions?id=eq.1', { as: 'service', length, method: 'PATCH' })],
    [401, 'PGRST301', open(acme, '/rest/v1/notes', { length, headers: { authorization: 'Bearer wrong' } })],
    [401, 'UNAUTHORIZED', open(acme, '/functions/v1/invoke/some', { length })],
    [401, 'UNAUTHORIZED', open(acme, '/storage/v1/bucket', { length })],
  ]
  for (const [expected, code, { response, socket }] of cases) {
    const { status, text } = await response
    t.equal(status, expected, text)
    t.match(text, code)
    socket.destroy()
  }
})

t.test('An anonymous body may have 1 MiB, a signed-in one 20 MiB', async (t) => {
  const declared = await open(acme, '/rest/v1/notes', { length: mebibyte + 1 }).response
  t.equal(declared.status, 413)
  t.match(declared.text, /BODY_TOO_LARGE/)
  t.match(declared.text, /at most 1048576 bytes/)
  const { socket, response } = open(acme, '/rest/v1/notes', { length: undefined })
  const chunk = Buffer.alloc(64 * 1024, ' ')
  for (let sent = 0; sent <= mebibyte; sent += chunk.length) {
    socket.write(`${chunk.length.toString(16)}\r\n`)
    socket.write(chunk)
    socket.write('\r\n')
  }
  t.equal((await response).status, 413)
  socket.destroy()
  const body = { data: { text: 'x'.repeat(2 * mebibyte) } }
  t.equal((await acme.request('POST', '/rest/v1/notes', { as: 'ada', body })).status, 201)
})

t.test('Many slow anonymous bodies use no more than their share, and signed-in users are served', async (t) => {
  const before = await residentBytes()
  const count = effort({ small: 60, full: 380 })
  const large = Array.from({ length: count }, (_, n) =>
    open(acme, '/rest/v1/notes', { length: 20 * mebibyte, address: `192.0.2.${n % 250}` }),
  )
  for (const { response } of large) t.equal((await response).status, 413)
  const half = Buffer.alloc(mebibyte / 2, ' ')
  const slow = Array.from({ length: count }, (_, n) => {
    const request = open(acme, '/rest/v1/notes', { length: mebibyte, address: `192.0.2.${n % 4}` })
    request.socket.write(half)
    return request
  })
  const rejected = await Promise.all(slow.slice(20).map(({ response }) => response))
  t.ok(
    rejected.every(({ status }) => [408, 429, 503].includes(status)),
    String(rejected.map(({ status }) => status)),
  )
  t.ok((await used()) <= 12 * mebibyte, 'all anonymous bodies use a quarter of the budget')
  for (const tenant of [acme, other])
    t.equal((await tenant.request('POST', '/rest/v1/notes', { as: 'ada', body: { data: {} } })).status, 201)
  for (const { socket } of [...large, ...slow]) socket.destroy()
  await until(async () => (await used()) === 0)
  t.ok((await metric('tenantry_runtime_budget_rejections_total', 'budget="bodies",share="address"')) > 0)
  t.ok((await residentBytes()) - before < 200 * mebibyte, `grew by ${(await residentBytes()) - before}`)
})

t.test('A tenant cannot use more than its share of the memory for bodies', async (t) => {
  const length = 2 * mebibyte
  const held = [
    open(acme, '/rest/v1/notes', { as: 'ada', length }),
    open(acme, '/rest/v1/notes', { as: 'ben', length }),
  ]
  await until(async () => (await used()) === 2 * 4 * length)
  const { status, text } = await open(acme, '/rest/v1/notes', { as: 'ada', length }).response
  t.equal(status, 429, text)
  t.match(text, /TOO_MANY_BYTES/)
  t.match(text, /retry-after: 1/)
  t.match(text, /x-tenantry-rejected: 1/)
  const body = { data: { text: 'x'.repeat(2 * mebibyte) } }
  t.equal((await other.request('POST', '/rest/v1/notes', { as: 'ada', body })).status, 201)
  for (const { socket } of held) socket.destroy()
  await until(async () => (await used()) === 0)
  t.equal((await acme.request('POST', '/rest/v1/notes', { as: 'ada', body })).status, 201)
})

t.test('A body that arrives too slowly is ended', async (t) => {
  const { response } = open(acme, '/rest/v1/notes', { as: 'ada', length: 10_000 })
  const { status, text } = await response
  t.equal(status, 408, text)
  t.match(text, /REQUEST_TIMEOUT/)
  t.equal(await used(), 0)
})

t.test('JSON of many small values is charged for what it becomes', async (t) => {
  const nested = `${'{"a":'.repeat(60)}1${'}'.repeat(60)}`
  const many = `{"data":[${Array.from({ length: 10_000 }, () => nested).join(',')}]}`
  const rejected = await acme.request('POST', '/rest/v1/notes', {
    as: 'ada',
    headers: { 'content-type': 'application/json' },
    body: many,
  })
  t.equal(rejected.status, 400)
  t.match(rejected.text, /more than 500000 objects and arrays/)
  const held = open(acme, '/rest/v1/notes', { as: 'ben', length: 1_000 })
  await until(async () => (await used()) > 0)
  const some = `{"data":[${Array.from({ length: 2_500 }, () => nested).join(',')}]}`
  const response = await acme.request('POST', '/rest/v1/notes', {
    as: 'ada',
    headers: { 'content-type': 'application/json' },
    body: some,
  })
  t.equal(response.status, 429, response.text)
  held.socket.destroy()
})

async function residentBytes(): Promise<number> {
  return Number(/^VmRSS:\s+(\d+)/m.exec(await readFile('/proc/self/status', 'utf8'))?.[1]) * 1024
}

t.test("A service's body on an internal route belongs to no tenant, and is read", async (t) => {
  const response = await fetch(`http://127.0.0.1:${runtime.port}/internal/v1/tenants/${acme.id}/hold`, {
    method: 'PUT',
    headers: { [internalTokenHeader]: internalToken, 'content-type': 'application/json' },
    body: '{"seconds":1}',
  })
  t.equal(response.status, 200)
  t.match(await response.json(), { held: true })
})
