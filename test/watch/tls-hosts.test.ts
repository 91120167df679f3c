// The host names for which a certificate may be issued: the installation's own, and those of tenants that exist.
import Fastify from 'fastify'
import t from 'tap'
import { addErrorHandler } from '#control-plane/http/error-handler.ts'
import { requestTls } from '#control-plane/watch/routes-tls-ask.ts'

const regions = [
  { id: 'north', domain: 'north.example.org', gateway_url: 'https://tenants.example.org' },
  { id: 'south', domain: 'south.example.org', gateway_url: 'https://south.example.org:8443' },
]

async function openApp() {
  const queries: string[] = []
  const has = async (name: string, region: string) => {
    queries.push(`${name} ${region}`)
    return name === 'acme' && region === 'north'
  }
  const app = Fastify({ ajv: { customOptions: { removeAdditional: false } } })
  addErrorHandler(app)
  await app.register(requestTls({ regions, hosts: { has } }))
  const request = async (domain: string) =>
    (await app.inject({ path: '/internal/v1/tls/ask', query: { domain } })).statusCode
  return { app, queries, request }
}

t.test('Own names and tenants of the region are allowed, in upper or lower case', async (t) => {
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

t.test('All other names get the same 404', async (t) => {
  const { app, request, queries } = await openApp()
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
  t.same(
    queries,
    ['acme south', 'other north'],
    'the database is queried only for names that could be those of tenants',
  )
  const bodies = await Promise.all(
    ['acme.south.example.org', 'evil.org'].map(
      async (domain) => (await app.inject({ path: '/internal/v1/tls/ask', query: { domain } })).body,
    ),
  )
  t.equal(bodies[0], bodies[1])
})

t.test('An invalid query is rejected', async (t) => {
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
