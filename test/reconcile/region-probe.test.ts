// The probe accepts a runtime's response only for the requested tenant and in the expected format.
import t from 'tap'
import { createRegionProbe } from '#control-plane/reconcile/region-probe.ts'

const [requested, other] = ['t_0123456789abcdef0123', 't_ffffffffffffffffffff']
const { signal } = new AbortController()

function probeOf(status: number, body: unknown) {
  return createRegionProbe('token', () => Promise.resolve(new Response(JSON.stringify(body), { status })))
}

const component = { status: 'healthy', observed_at: '2026-01-01T00:00:00.000Z' }
const health = (tenantId: string, message?: string) => ({
  tenant_id: tenantId,
  generation: 3,
  status: 'healthy',
  components: {
    database: component,
    storage: message === undefined ? component : { ...component, message },
    functions: component,
  },
})
const usage = (tenantId: string) => ({
  tenant_id: tenantId,
  file_bytes: 1,
  file_count: 1,
  document_bytes: 1,
  function_invocations: 1,
})

t.test('The probe rejects a response about another tenant', async (t) => {
  t.same(await probeOf(200, health(requested)).tenantHealth('http://runtime', requested, signal), health(requested))
  t.same(await probeOf(200, usage(requested)).tenantUsage('http://runtime', requested, signal), usage(requested))
  await t.rejects(probeOf(200, health(other)).tenantHealth('http://runtime', requested, signal), {
    message: /another tenant/,
  })
  await t.rejects(probeOf(200, usage(other)).tenantUsage('http://runtime', requested, signal), {
    message: /another tenant/,
  })
  t.equal(await probeOf(404, {}).tenantHealth('http://runtime', requested, signal), undefined)
})

t.test('The probe requests the health with or without the structure of the home', async (t) => {
  const urls: string[] = []
  const probe = createRegionProbe('token', (url) => {
    urls.push(url instanceof URL ? url.href : '')
    return Promise.resolve(new Response(JSON.stringify(health(requested))))
  })
  await probe.tenantHealth('http://runtime', requested, signal)
  await probe.tenantHealth('http://runtime', requested, signal, 'trusted')
  const url = `http://runtime/internal/v1/tenants/${requested}/health`
  t.same(urls, [url, `${url}?structure=trusted`])
})

t.test('The probe rejects a message of more than 500 characters', async (t) => {
  t.same(
    await probeOf(200, health(requested, 'x'.repeat(500))).tenantHealth('http://runtime', requested, signal),
    health(requested, 'x'.repeat(500)),
  )
  await t.rejects(probeOf(200, health(requested, 'x'.repeat(501))).tenantHealth('http://runtime', requested, signal), {
    message: /^Invalid response to /,
  })
})
