// The relay for a tenant with several runtimes of its own: its health is that of the worst, and other calls need only one.
import { createServer, type RequestListener } from 'node:http'
import t, { type Test } from 'tap'
import { listen } from '#test/support/listen.ts'
import { send, startSetting, token } from './support/gateway.ts'

async function runtime(t: Test, respond: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(t, createServer(respond))}`
}

const component = { status: 'healthy', observed_at: '2026-11-21T08:00:00.000Z' }
const components = { database: component, storage: component, functions: component }

t.test("A tenant's health is that of the runtime that is worst or knows the oldest generation", async (t) => {
  const setting = await startSetting(t)
  const states: { status: string; generation: number; code?: number }[] = [
    { status: 'healthy', generation: 2 },
    { status: 'healthy', generation: 2 },
  ]
  const urls = await Promise.all(
    states.map((_, at) =>
      runtime(t, (request, response) => {
        const { status, generation, code = 200 } = states[at] ?? { status: '', generation: 0 }
        const [, tenantId = ''] = /tenants\/(t_[0-9a-f]+)/.exec(request.url ?? '') ?? []
        response.writeHead(code, { 'content-type': 'application/json' })
        response.end(JSON.stringify({ tenant_id: tenantId, generation, status, components }))
      }),
    ),
  )
  const { tenant_id } = await setting.add('acme', { dedicated: true, runtimes: urls })
  const health = async () => {
    const { status, body } = await send(setting.gateway.internalPort, {
      path: `/internal/v1/tenants/${tenant_id}/health`,
      method: 'GET',
      headers: { 'x-tenantry-internal': token },
    })
    return { code: status, ...(JSON.parse(body) as Record<string, unknown>) }
  }
  t.match(await health(), { code: 200, status: 'healthy', generation: 2 })
  for (const at of [0, 1]) {
    const before = states[at] ?? { status: '', generation: 0 }
    states[at] = { status: 'healthy', generation: 1 }
    t.match(await health(), { code: 200, status: 'healthy', generation: 1 }, 'an older generation')
    states[at] = { status: 'unhealthy', generation: 3 }
    t.match(await health(), { code: 200, status: 'unhealthy' })
    states[at] = { status: 'healthy', generation: 2, code: 404 }
    t.match(await health(), { code: 404 }, 'a runtime that does not know the tenant')
    states[at] = before
  }
  const [one = ''] = urls
  await setting.add('lonely', { dedicated: true, runtimes: [one, 'http://127.0.0.1:1'] }).then(async (route) => {
    const { body } = await send(setting.gateway.internalPort, {
      path: `/internal/v1/tenants/${route.tenant_id}/health`,
      method: 'GET',
      headers: { 'x-tenantry-internal': token },
    })
    t.match(JSON.parse(body), { code: 'RUNTIME_UNREACHABLE' })
  })
})

t.test('Usage is read from the next runtime if the first cannot be reached', async (t) => {
  const setting = await startSetting(t)
  const url = await runtime(t, (_, response) => response.writeHead(200).end('usage'))
  const { tenant_id } = await setting.add('acme', { dedicated: true, runtimes: ['http://127.0.0.1:1', url] })
  const { status, body } = await send(setting.gateway.internalPort, {
    path: `/internal/v1/tenants/${tenant_id}/usage`,
    method: 'GET',
    headers: { 'x-tenantry-internal': token },
  })
  t.same([status, body], [200, 'usage'])
})
