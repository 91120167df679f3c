// The memory for the results of all requests together, from the database's first byte until the client has received them.
import { connect, type Socket } from 'node:net'
import t from 'tap'
import { internalPaths, internalTokenHeader, tenantHeader } from '@tenantry/contract'
import { command } from '#test/functions/support/wasm.ts'
import { startRuntime, type TestTenant } from '#test/support/runtime.ts'
import { internalToken } from '#test/support/tenant-proxy.ts'
import { until } from '#test/support/until.ts'

const mebibyte = 2 ** 20
/** A tenant has a third of it. Six notes need less than half of that while they arrive, all notes need more even when sent. */
const resultBytes = 144 * mebibyte
const runtime = await startRuntime(t, { bounds: { resultBytes } })
const acme = await runtime.addTenant({ name: 'acme' })
const other = await runtime.addTenant({ name: 'other' })
for (const tenant of [acme, other]) {
  const fields = [
    { name: 'id', type: 'number', primary: true },
    { name: 'owner', type: 'string' },
    { name: 'text', type: 'string' },
  ]
  const policy = { type: 'public_read', owner_field: 'owner' }
  await succeed(tenant, 'POST', '/rest/v1/schemas', { name: 'notes', fields, rls_policy: policy })
  await succeed(tenant, 'POST', '/admin/reload-schemas')
  for (const from of [1, 11, 21]) {
    const records = Array.from({ length: 10 }, (_, n) => ({ id: from + n, text: 'x'.repeat(1_000_000) }))
    await succeed(tenant, 'POST', '/rest/v1/notes', records)
  }
}

async function succeed(tenant: TestTenant, method: string, path: string, body?: object): Promise<void> {
  const { status, text } = await tenant.request(method, path, {
    as: 'service',
    ...(body === undefined ? {} : { body }),
  })
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`)
}

/** Sends a request to the runtime itself, and reads no more than the first bytes of the response. */
function openUnread(
  tenant: TestTenant,
  path: string,
  as: string | undefined,
): { socket: Socket; begun: Promise<string> } {
  const socket = connect(runtime.port, '127.0.0.1')
  const headers = { host: 'runtime', [internalTokenHeader]: internalToken, [tenantHeader]: tenant.id, ...tenant.as(as) }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`)
  const begun = new Promise<string>((resolve) => {
    socket.once('data', (chunk: Buffer) => {
      socket.pause()
      resolve(chunk.toString('latin1', 0, 2_000))
    })
  })
  socket.on('error', () => undefined)
  t.teardown(() => socket.destroy())
  return { socket, begun }
}

async function metric(name: string, labels: string): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${runtime.port}${internalPaths.metrics}`, {
    headers: { [internalTokenHeader]: internalToken },
  })
  const line = (await response.text()).split('\n').find((text) => text.startsWith(`${name}{${labels}}`))
  return Number(line?.split(' ').at(-1) ?? Number.NaN)
}
const used = () => metric('tenantry_runtime_budget_used_bytes', 'budget="results"')
const rejections = (share: string) =>
  metric('tenantry_runtime_budget_rejections_total', `budget="results",share="${share}"`)

const all = '/rest/v1/notes?select=text'
const six = '/rest/v1/notes?select=text&id=lte.6'

t.test('Results that nobody reads use no more than the share of their tenant', async (t) => {
  t.equal(await metric('tenantry_runtime_budget_limit_bytes', 'budget="results"'), resultBytes)
  const first = openUnread(acme, all, 'ada')
  t.match(await first.begun, /^HTTP\/1\.1 200/)
  // They leave some of the tenant's ten connections.
  const unread = Array.from({ length: 5 }, () => openUnread(acme, all, 'ben'))
  // The rows of the others wait in Postgres. Other tenants, small results and small writes do not wait.
  t.equal((await other.request('GET', six, { as: 'ada' })).status, 200)
  t.equal((await acme.request('GET', '/rest/v1/notes?select=id&id=eq.1', { as: 'ada' })).text, '[{"id":1}]')
  t.equal((await acme.request('PATCH', '/rest/v1/notes?id=eq.1', { as: 'service', body: { id: 1 } })).status, 204)
  const { status, headers, text } = await acme.request('GET', all, { as: 'ada' })
  t.equal(status, 429, text)
  t.match(text, /TOO_MANY_BYTES/)
  t.match(text, /The results in progress of this tenant use all of their 50331648 bytes of memory/)
  t.equal(headers['retry-after'], '1')
  for (const { begun } of unread) t.match(await begun, /^HTTP\/1\.1 429/)
  t.equal(await rejections('tenant'), 6)
  t.ok((await used()) <= 64_000_000, String(await used()))
  for (const { socket } of [first, ...unread]) socket.destroy()
  await until(async () => (await used()) === 0)
  t.equal((await acme.request('GET', all, { as: 'ada' })).status, 200)
  t.same(runtime.errors, [])
})

t.test('A result that waits is sent when another one is received', async (t) => {
  const { socket, begun } = openUnread(acme, all, 'ada')
  t.match(await begun, /^HTTP\/1\.1 200/)
  const second = acme.request('GET', all, { as: 'ben' })
  socket.resume()
  const { status, bytes } = await second
  t.equal(status, 200)
  t.ok(bytes.length > 30_000_000)
  socket.destroy()
  await until(async () => (await used()) === 0)
})

t.test('Anonymous callers leave a part of the share to the users', async (t) => {
  const { socket, begun } = openUnread(acme, six, undefined)
  t.match(await begun, /^HTTP\/1\.1 200/)
  const { status, text } = await acme.request('GET', six)
  t.equal(status, 503, text)
  t.match(text, /SERVICE_BUSY/)
  t.equal((await acme.request('GET', '/rest/v1/notes?select=id')).status, 200)
  t.equal((await acme.request('GET', six, { as: 'ada' })).status, 200)
  t.equal(await rejections('anonymous'), 1)
  socket.destroy()
  await until(async () => (await used()) === 0)
})

t.test('A change whose result has no room reports that its outcome is unknown', async (t) => {
  const { socket, begun } = openUnread(acme, all, 'ada')
  await begun
  const { status, text } = await acme.request('PATCH', '/rest/v1/notes?id=gte.1', {
    as: 'service',
    headers: { prefer: 'return=representation' },
    body: { text: 'y'.repeat(1_000_000) },
  })
  t.equal(status, 503, text)
  t.match(text, /SERVICE_BUSY/)
  t.match(text, /which may have been made/)
  socket.destroy()
  await until(async () => (await used()) === 0)
})

t.test('Large rows of a streamed response are counted until the client has received it', async (t) => {
  const streamed = `${all}&limit=2000`
  const unread = openUnread(acme, streamed, 'ada')
  t.match(await unread.begun, /^HTTP\/1\.1 200/)
  t.ok((await used()) >= 3_000_000)
  unread.socket.destroy()
  await until(async () => (await used()) === 0)
  const { socket, begun } = openUnread(acme, all, 'ada')
  await begun
  const { status, text } = await acme.request('GET', streamed, { as: 'ben' })
  t.equal(status, 429, text.slice(0, 1_000))
  socket.destroy()
  await until(async () => (await used()) === 0)
  const again = await acme.request('GET', streamed, { as: 'ada' })
  t.equal(again.status, 200)
  t.ok(again.bytes.length > 30_000_000)
  await until(async () => (await used()) === 0)
})

t.test('A function is not run while unread results use the share of its tenant', async (t) => {
  const form = new FormData()
  form.set('name', 'empty')
  form.set('trigger', '"Http"')
  form.set('wasm', new Blob([command()]), 'empty.wasm')
  const deployed = await fetch(`http://127.0.0.1:${acme.port}/functions/v1/deploy`, {
    method: 'POST',
    headers: acme.as('service'),
    body: form,
  })
  t.ok(deployed.ok, await deployed.text())
  const { socket, begun } = openUnread(acme, all, 'ada')
  await begun
  const invoke = () => acme.request('POST', '/functions/v1/invoke/empty', { as: 'ada', body: '' })
  const { status, text, headers } = await invoke()
  t.equal(status, 429, text)
  t.match(text, /TOO_MANY_BYTES/)
  t.equal(headers['x-tenantry-rejected'], '1')
  socket.destroy()
  await until(async () => (await used()) === 0)
  t.equal((await invoke()).status, 200)
})
