// The runtime's storage in a real S3 server that it reaches only through the egress proxy.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { request, type Agent, type ServerResponse } from 'node:http'
import { createTunnelAgents } from '#tenant-runtime/egress/tunnel-agents.ts'
import { until } from '#test/support/until.ts'
import t from 'tap'
import { S3Backend } from '#tenant-runtime/storage/backend/s3.ts'
import { tunnelToStorage } from '#tenant-runtime/egress/egress-proxy.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { startS3Server } from '#test/support/s3-server.ts'
import { internalToken, publicAddress, servePublicly, startProxy, tenantA } from './support/proxy.ts'

t.test('Requests wait for their turn, and one that is aborted meanwhile takes no turn', async (t) => {
  const pending: ServerResponse[] = []
  const port = await servePublicly(t, (_request, response) => void pending.push(response))
  const { proxy, tunnelOf } = await startProxy(t)
  const { httpAgent } = createTunnelAgents(tunnelOf(tenantA), 1)
  t.teardown(() => httpAgent.destroy())
  const send = (agent: Agent, signal?: AbortSignal) =>
    request({ agent, host: publicAddress, port, ...(signal === undefined ? {} : { signal }) })
      .on('error', () => undefined)
      .on('response', (response) => response.resume())
      .end()
  const first = send(httpAgent)
  const aborted = [new AbortController(), new AbortController()]
  for (const { signal } of aborted) send(httpAgent, signal)
  const last = send(httpAgent)
  await until(() => pending.length === 1)
  aborted[0]?.abort()
  t.equal(proxy.shares.open, 1)
  pending[0]?.end()
  await once(first, 'close')
  aborted[1]?.abort()
  await until(() => pending.length >= 2)
  for (const response of pending) response.end()
  const lastResponse = once(last, 'response')
  await until(() => {
    for (const response of pending) response.end()
    return pending.length >= 2
  })
  await lastResponse
  t.equal(proxy.shares.open, 1, 'all requests used one connection')
  // A proxy that does not connect is an error of the request.
  proxy.close()
  await t.rejects(
    once(
      request({ agent: createTunnelAgents(tunnelOf(tenantA), 1).httpAgent, host: publicAddress, port }).end(),
      'response',
    ),
    { code: 'ECONNREFUSED' },
  )
})

t.test('Files are stored and read through the proxy, and without its rule the storage is unavailable', async (t) => {
  const server = await startS3Server()
  t.teardown(() => server.stop())
  const { port, hostname } = new URL(server.settings.endpoint ?? '')
  const { proxy, url } = await startProxy(t, { rules: { storage: [{ hostname, port: Number(port) }] } })
  let maxOpen = 0
  proxy.server.on('connect', () => setImmediate(() => (maxOpen = Math.max(maxOpen, proxy.shares.open))))
  const through = (at: string) =>
    new S3Backend({
      ...server.settings,
      egress: { tunnel: tunnelToStorage({ url: at, token: internalToken }), maxSockets: 3 },
    })
  const { addTenant } = await startRuntime(t, { backend: through(url) })
  const tenant = await addTenant()
  const files = '/storage/v1/object/docs'
  t.equal((await tenant.request('POST', '/storage/v1/bucket', { as: 'u1', body: { name: 'docs' } })).status, 201)
  const bodies = Array.from({ length: 8 }, () => randomBytes(300_000))
  const statuses = await Promise.all(
    bodies.map(
      async (body, n) =>
        (await tenant.request('POST', `${files}/${n}`, { as: 'u1', body, headers: { 'content-type': 'text/x' } }))
          .status,
    ),
  )
  t.same(new Set(statuses), new Set([200]))
  for (const [n, body] of bodies.entries())
    t.ok(body.equals((await tenant.request('GET', `${files}/${n}`, { as: 'u1' })).bytes))
  t.ok((await server.keys()).whole.length >= 8)
  t.ok(maxOpen > 0 && maxOpen <= 3, `${maxOpen} connections at once`)

  const closed = await startProxy(t)
  await t.rejects(through(closed.url).start(), /The storage can not use the bucket blobs .* \(ADDRESS_REJECTED\)/)
})
