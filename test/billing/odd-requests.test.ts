// Random and malformed requests to the routes of usage, invoices and webhooks. Each succeeds or fails with a coded error, never
// with a 5xx, and a rejected request adds no row.
import fc from 'fast-check'
import t from 'tap'
import { internalToken } from '#test/support/control-plane/api.ts'
import { effort, seed } from '#test/support/effort.ts'
import { startBilledApi } from './support/billed-api.ts'

const api = await startBilledApi(t)
const tenant = await api.create()
const text = api.month.toISOString().slice(0, 7)
await api.count(tenant.tenant_id, new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000), 1_000_000)
await api.closeUntil(new Date(api.next.getTime() + 2 * 3_600_000))
const draft = await api.call('POST', `/v1/tenants/${tenant.tenant_id}/invoices/close`, {
  body: { month: text, final: false },
})
const invoiceId = String((draft.body as Record<string, unknown>)['invoice_id'])
const hook = await api.call('POST', '/v1/webhooks', { body: { url: 'https://billing.example/hooks' } })
const hookId = String((hook.body as Record<string, unknown>)['id'])

const large = 'x'.repeat(1_000_000)
const odd = [
  '',
  '\0',
  'a\0b',
  '\ud83e',
  '\udd8a half',
  '../..',
  '%2e%2e',
  "'; drop table invoices; --",
  '__proto__',
  'constructor',
  '٢٠٢٦-٠١',
  '²',
  '🦊',
  '-1',
  '1e9',
  '9'.repeat(400),
  'null',
  'undefined',
  'NaN',
  '=1+1',
  '\r\nx: y',
  'x'.repeat(5_000),
]
const months = [
  text,
  '2026-13',
  '2026-00',
  '0000-01',
  '0001-01',
  '0099-12',
  '1969-12',
  '1970-01',
  '9999-12',
  '10000-01',
  '+2026-01',
  '-2026-01',
  '2026-1',
  ' 2026-01',
  '2026-01 ',
  '2026-01\n',
  '2026-01-01',
  '2026-01T00:00:00Z',
  '202601',
  '٢٠٢٦-٠١',
  '２０２６-０１',
  '2026‐01',
  'now',
]
const ids = [
  tenant.tenant_id,
  't_00000000000000000000',
  tenant.tenant_id.toUpperCase(),
  `${tenant.tenant_id}\0`,
  invoiceId,
  hookId,
  invoiceId.toUpperCase(),
  '00000000-0000-4000-8000-000000000000',
  ...odd,
]
const forms = ['', '.json', '.csv', '.pdf', '.PDF', '.xml', '.', '.csv.csv', '.pdf\0', '.jsonx']
const accepts = [
  '*/*',
  'text/csv',
  'application/pdf',
  'application/json',
  'text/csv;q=0',
  'text/csv;q=0.5, application/json;q=0.4',
  'text/*;q=0.9, */*;q=0.1',
  'text/csv;q=2',
  'text/csv;q=',
  'text/csv;q=0.1234',
  'text/csv;;;',
  ',',
  ';q=1',
  'image/png',
  'application/pdf;q=1.000, */*;q=0',
  `${'text/csv,'.repeat(1_000)}a/b`,
  'TEXT/CSV',
  '"text/csv"',
  'text/csv; charset=latin1; q=0.2',
]
const cursors = [
  'x',
  '%00',
  'bnVsbA',
  'W10',
  'W251bGxd',
  Buffer.from(JSON.stringify([tenant.tenant_id])).toString('base64url'),
  Buffer.from(JSON.stringify(['2026-01-01T00:00:00.000Z', 'x'])).toString('base64url'),
  Buffer.from(JSON.stringify([9e99, null])).toString('base64url'),
  Buffer.from('t_0000000000000000000\0').toString('base64url'),
  Buffer.from(JSON.stringify(['+275760-09-13T00:00:00.000Z', invoiceId])).toString('base64url'),
  Buffer.from(JSON.stringify(['9'.repeat(40)])).toString('base64url'),
  'a'.repeat(513),
  'A'.repeat(100_000),
]
const bodies: unknown[] = [
  {},
  null,
  [],
  7,
  'x',
  { month: text, final: false },
  { month: 7 },
  { month: [text] },
  { month: null },
  { month: text, final: 'yes' },
  { month: text, more: 1 },
  { final: true },
  { reason: '' },
  { reason: '\0' },
  { reason: '\ud83e' },
  { reason: large },
  { reason: 7 },
  { reason: 'a\nb' },
  { name: 'a', lines: [] },
  { name: '\0', lines: [] },
  { name: 'a', lines: ['\0'] },
  { name: 'a', lines: [1] },
  { name: 'a', lines: Array.from({ length: 10_000 }, () => 'x') },
  { name: large, lines: [] },
  { name: '', lines: [] },
  { name: 'half \ud83e', lines: [] },
  { url: 'https://a.example', types: ['no.such'] },
  { url: 'https://a.example', description: large },
  { url: 'https://a.example', description: '\0' },
  { url: 'https://a.example', description: 'half \ud83e' },
  { url: `https://a.example/${'x'.repeat(3_000)}` },
  { url: 'https://a.example/\0' },
  { url: 'https://[::1' },
  { url: 'file:///etc/passwd' },
  { url: 'https://user@a.example' },
  { url: '' },
  { url: 7 },
  { url: ['https://a.example'] },
  { types: 'invoice.final' },
  { types: Array.from({ length: 2_000 }, () => 'invoice.final') },
  { enabled: 'no' },
  { enabled: null },
  ...[
    '1',
    '-1',
    '0',
    '-0',
    '+1',
    '1e3',
    '.5',
    '1.',
    '0.0000001',
    '1,5',
    '٣',
    ' 1',
    '999999999.999999',
    '1000000000',
    'NaN',
    '--1',
    '1\n',
    7,
    null,
    ['1'],
  ].map((amount) => ({ description: 'x', amount })),
  { description: '', amount: '1' },
  { description: '\0', amount: '1' },
  { description: 'half \ud83e', amount: '1' },
  { description: large, amount: '1' },
  { description: 'a\nb', amount: '1' },
  { amount: '1' },
  { description: 'x' },
  { overlap_seconds: -1 },
  { overlap_seconds: 1e300 },
  { overlap_seconds: '1' },
  { overlap_seconds: 0.5 },
  { url: 'https://a.example', __proto__x: 1 },
]
const payloads = [
  '{"month":"2026-01","month":["x"]}',
  '{"__proto__":{"month":"2026-01"}}',
  '{',
  '',
  '\0',
  `{"reason":"${large}"}`,
  '['.repeat(30_000),
  '{"overlap_seconds":1e999}',
  '\ufeff{}',
]
const values = [
  ...months,
  ...odd,
  '1',
  '0',
  '1000',
  '1001',
  '0x10',
  ' 1',
  'hour',
  'day',
  'hour,day',
  'storage',
  'requests',
  'dead',
  'pending',
  'gateway',
  'home',
]
const queryNames = [
  'month',
  'limit',
  'cursor',
  'granularity',
  'resource',
  'kind',
  'state',
  'page',
  '__proto__',
  'month[]',
  'month[0]',
  'limit[$gt]',
  'constructor',
  '',
]

const pick = <T>(all: readonly T[]) => fc.constantFrom(...all)
const query = fc.array(fc.tuple(pick(queryNames), fc.oneof(pick(values), pick(cursors))), { maxLength: 3 })
const routes = pick([
  'GET /v1/tenants/{id}/usage',
  'GET /v1/tenants/{id}/usage/{month}',
  'GET /v1/usage',
  'GET /v1/usage/sources',
  'DELETE /v1/usage/sources/{id}',
  'GET /v1/tenants/{id}/invoices',
  'GET /v1/tenants/{id}/invoices.csv',
  'GET /v1/tenants/{id}/invoices/{month}{form}',
  'GET /v1/tenants/{id}/invoices/{id}{form}',
  'POST /v1/tenants/{id}/invoices/close',
  'POST /v1/tenants/{id}/invoices/{id}/void',
  'GET /v1/tenants/{id}/invoices/upcoming{form}',
  'GET /v1/tenants/{id}/adjustments',
  'POST /v1/tenants/{id}/adjustments',
  'DELETE /v1/tenants/{id}/adjustments/{id}',
  'GET /v1/tenants/{id}/buyer',
  'PUT /v1/tenants/{id}/buyer',
  'GET /v1/webhooks',
  'POST /v1/webhooks',
  'GET /v1/webhooks/{id}',
  'PATCH /v1/webhooks/{id}',
  'POST /v1/webhooks/{id}/rotate',
  'GET /v1/webhooks/{id}/deliveries',
  'POST /v1/webhooks/{id}/replay',
  'POST /v1/webhooks/{id}/deliveries/{id}/replay',
  'GET /internal/v1/tenants/{id}/usage',
  'POST /internal/v1/usage',
  'POST /internal/v1/leases',
] as const)
const ours = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(tenant.tenant_id, invoiceId, hookId) },
  { weight: 2, arbitrary: pick(ids) },
)
const requests = fc.record({
  route: routes,
  ids: fc.tuple(ours, ours),
  month: fc.oneof(pick(months), pick(odd)),
  form: pick(forms),
  query,
  accept: fc.option(
    fc.oneof(
      pick(accepts),
      fc.string({ unit: 'binary-ascii', maxLength: 30 }).map((any) => any.replace(/[^\x20-\x7e]/g, '')),
    ),
    { nil: undefined },
  ),
  body: fc.oneof(
    pick(bodies).map((body) => ({ body })),
    pick(payloads).map((payload) => ({ payload })),
    fc.jsonValue({ maxDepth: 2 }).map((body) => ({ body })),
  ),
  isEncoded: fc.boolean(),
})

const toUrl = (value: string, isEncoded: boolean) =>
  isEncoded
    ? encodeURIComponent(value.toWellFormed())
    : value.toWellFormed().replace(/[^\x21-\x7e]|[#?/]/gu, (char) => encodeURIComponent(char))

t.test('Malformed requests fail with a coded error and change nothing', { timeout: 300_000 }, async (t) => {
  t.comment(`seed ${seed}`)
  let rejected = 0
  let accepted = 0
  const before = await api.counts()
  await fc.assert(
    fc.asyncProperty(requests, async ({ route, ids: [first, second], month, form, query, accept, body, isEncoded }) => {
      const [method = '', template = ''] = route.split(' ')
      let n = 0
      const path = template.replace(/\{(\w+)\}/g, (_, name: string) =>
        name === 'form'
          ? toUrl(form, isEncoded)
          : toUrl(name === 'month' ? month : n++ === 0 ? first : second, isEncoded),
      )
      const search = query.map(([name, value]) => `${toUrl(name, isEncoded)}=${toUrl(value, true)}`).join('&')
      const isInternal = path.startsWith('/internal/')
      const headers = {
        ...(accept === undefined ? {} : { accept }),
        ...(isInternal ? { 'x-tenantry-internal': internalToken } : {}),
      }
      const result = await api.call(method, search === '' ? path : `${path}?${search}`, {
        ...(method === 'GET' || method === 'DELETE' ? {} : body),
        headers,
        ...(isInternal ? { key: null } : {}),
      })
      if (result.status >= 500)
        throw new Error(
          `${method} ${path.slice(0, 300)}?${search.slice(0, 300)} ${JSON.stringify(body).slice(0, 300)} ` +
            `accept ${accept ?? '-'}: ${result.status} ${result.text}`,
        )
      if (result.status < 400) {
        accepted++
        return
      }
      rejected++
      const error = result.body as Record<string, unknown>
      if (
        typeof error['code'] !== 'string' ||
        typeof error['message'] !== 'string' ||
        typeof error['error'] !== 'string'
      )
        throw new Error(`${method} ${path}: ${result.text}`)
      if (result.text.length > 4_000)
        throw new Error(`${method} ${path.slice(0, 300)}: an error of ${result.text.length} characters`)
    }),
    { numRuns: effort({ small: 1_500, full: 60_000 }), seed, endOnFailure: false },
  )
  t.ok(rejected > 100 && accepted > 50, `${rejected} requests rejected, ${accepted} accepted`)
  const after = await api.counts()
  for (const table of ['invoices', 'tenants', 'usage_counters']) t.equal(after[table], before[table], table)
  t.same(
    api.log.filter((line) => line.includes('"level":50')),
    [],
    'the control plane logs no error',
  )
})

t.test('Malformed requests leave the draft unchanged, and its PDF is a draft', async (t) => {
  const path = `/v1/tenants/${tenant.tenant_id}/invoices/${text}`
  t.match((await api.call('GET', path)).body, { state: 'draft', number: null, invoice_id: invoiceId })
  const pdf = await api.call('GET', `${path}.pdf`)
  t.equal(pdf.status, 200)
  t.match(pdf.headers['content-disposition'], `filename="invoice-draft-${text}.pdf"`)
})
