// For which host names a certificate may be got: the installation's own, and those of tenants that exist.
import Fastify from 'fastify'
import t from 'tap'
import { addErrorHandler } from '#control-plane/http/error-handler.ts'
import { requestTls } from '#control-plane/watch/routes-tls-ask.ts'

const regions = [
  { id: 'north', domain: 'north.example.org', gateway_url: 'https://tenants.example.org' },
  { id: 'south', domain: 'south.example.org', gateway_url: 'https://south.example.org:8443' },
]

async function openApp() {
  const requested: string[] = []
  const has = async (name: string, region: string) => {
    requested.push(`${name} ${region}`)
    return name === 'acme' && region === 'north'
  }
  const app = Fastify({ ajv: { customOptions: { removeAdditional: false } } })
  addErrorHandler(app)
  await app.register(requestTls({ regions, hosts: { has } }))
  const request = async (domain: string) =>
    (await app.inject({ path: '/internal/v1/tls/ask', query: { domain } })).statusCode
  return { app, requested, request }
}

t.test('own names and tenants of the region pass, in any case', async (t) => {
  const { request } = await openApp()
  for (const domain of [
    'tenants.example.org',
    'north.example.org',
    'south.example.org',
    'acme.north.example.org',
    'Acme.North.EXAMPLE.org',
  ])
    t.equal(await request(domain), 200, domain)
})

t.test('all other names are as unknown as each other', async (t) => {
  const { app, request, requested } = await openApp()
  for (const domain of [
    'acme.south.example.org',
    'other.north.example.org',
    'x.acme.north.example.org',
    'acme.tenants.example.org',
    'example.org',
    'evil.org',
    'acmenorth.example.org',
    'north.example.org.evil.org',
    '.north.example.org',
    'acme.north.example.org.',
    '*.north.example.org',
    '1.2.3.4',
    "a'b.north.example.org",
    `${'a'.repeat(64)}.north.example.org`,
  ])
    t.equal(await request(domain), 404, domain)
  t.same(requested, ['acme south', 'other north'], 'and the database is asked only for what could be a tenant')
  const bodies = await Promise.all(
    ['acme.south.example.org', 'evil.org'].map(
      async (domain) => (await app.inject({ path: '/internal/v1/tls/ask', query: { domain } })).body,
    ),
  )
  t.equal(bodies[0], bodies[1])
})

t.test('a question that is none is refused', async (t) => {
  const { app, request } = await openApp()
  t.equal(await request(''), 400)
  t.equal(await request('a'.repeat(254)), 400)
  for (const path of [
    '/internal/v1/tls/ask',
    '/internal/v1/tls/ask?domain=a&domain=b',
    '/internal/v1/tls/ask?domain=a&x=1',
  ])
    t.equal((await app.inject(path)).statusCode, 400, path)
})
