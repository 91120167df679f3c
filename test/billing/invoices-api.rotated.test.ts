// Invoices over the API: of closed months, numbered without a gap, unchangeable when final, in three formats.
import t from 'tap'
import { readDecimalText } from '#control-plane/billing/money.ts'
import type { InvoiceBody } from '#control-plane/billing/invoice-body.ts'
import { isError, startApi } from '#test/support/control-plane/api.ts'
import { startBilledApi } from './support/billed-api.ts'
import { amounts } from './support/prices.ts'
import { cent, referenceCost } from './support/reference.ts'

const api = await startBilledApi(t)
const { month, next } = api
const text = month.toISOString().slice(0, 7)
const [first, second] = [await api.create(), await api.create()]
const path = `/v1/tenants/${first.tenant_id}/invoices`
const thisHour = new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000)
const close = async (tenantId: string, body: object = { month: text }) =>
  api.call('POST', `/v1/tenants/${tenantId}/invoices/close`, { body })
const made = async (tenantId: string, body?: object) => (await close(tenantId, body)).body as InvoiceBody
const expected = async (tenantId: string, requests: bigint) =>
  referenceCost(
    month,
    await api.billing.history.periods(tenantId, month, next),
    [{ hour: thisHour, amounts: amounts({ requests }) }],
    cent,
  )

t.test('The API rejects an invoice for a month that is not over or not closed', async (t) => {
  isError(t, await close(first.tenant_id), 409, 'MONTH_NOT_CLOSED', 'Month', 'month not closed')
  isError(t, await close(first.tenant_id, { month: '2999-01' }), 400, 'FUTURE_MONTH', '2999-01', 'future month')
  isError(t, await close(first.tenant_id, { month: '2026-13' }), 400, 'INVALID_MONTH', '2026-13', 'invalid month')
  isError(t, await close(first.tenant_id, { month: '2025-12' }), 422, 'NO_PRICES', '2025-12', 'no prices')
  isError(t, await close('t_00000000000000000000'), 404, 'TENANT_NOT_FOUND', 'tenant', 'tenant not found')
  isError(
    t,
    await close(first.tenant_id, { month: '2026-01' }),
    404,
    'INVOICE_NOT_FOUND',
    'no plan in 2026-01',
    'month before the tenant was created',
  )
  await api.count(first.tenant_id, thisHour, 1_234_567)
  api.clock.ahead = next.getTime() + 3_600_000 - Date.now()
  isError(
    t,
    await close(first.tenant_id),
    409,
    'MONTH_NOT_CLOSED',
    'not closed yet',
    'the month is over, but the gateway may still send usage of it',
  )
  t.same((await api.call('GET', path)).body, { invoices: [], next_cursor: null })
  t.same((await api.counts())['invoices'], 0)
})

t.test(
  'A draft can be renewed and has no number; the final invoice gets the next number, and a repeat changes nothing',
  async (t) => {
    await api.closeUntil(new Date(next.getTime() + 2 * 3_600_000))
    const draft = await made(first.tenant_id, { month: text, final: false })
    t.match(draft, {
      state: 'draft',
      number: null,
      final_at: null,
      tenant_id: first.tenant_id,
      month: text,
      currency: 'EUR',
      buyer: { name: first.name, lines: [] },
    })
    t.equal(readDecimalText(draft.net), await expected(first.tenant_id, 1_234_567n))
    t.ok(readDecimalText(draft.net) > 0n)

    const buyer = { name: 'Ærø Bryggeri A/S', lines: ['Havnegade 1', 'Ærøskøbing'] }
    t.same(
      (await api.call('PUT', `/v1/tenants/${first.tenant_id}/buyer`, { body: buyer, key: api.keys.billing })).body,
      buyer,
    )
    const final = await made(first.tenant_id)
    t.match(final, {
      invoice_id: draft.invoice_id,
      state: 'final',
      number: 'NL-000001',
      buyer,
      net: draft.net,
      total: draft.total,
    })
    await api.call('PUT', `/v1/tenants/${first.tenant_id}/buyer`, { body: { name: 'Another', lines: [] } })
    t.same(await made(first.tenant_id), final)
    t.same(
      await made(first.tenant_id, { month: text, final: false }),
      final,
      'a final invoice does not become a draft again',
    )
    t.same((await api.call('GET', `${path}/${final.invoice_id}`)).body, final)
    t.same(await api.sql('select number, state from invoices'), [{ number: 1, state: 'final' }])
  },
)

t.test('The extension or the Accept header selects JSON, CSV or PDF', async (t) => {
  const json = await api.call('GET', `${path}/${text}`)
  const invoice = json.body as InvoiceBody
  t.same(
    [json.status, json.headers['content-type'], json.headers['vary']],
    [200, 'application/json; charset=utf-8', 'accept'],
  )
  const csv = await api.call('GET', `${path}/${invoice.invoice_id}`, {
    headers: { accept: 'application/pdf;q=0.5, text/csv' },
  })
  t.equal(csv.headers['content-type'], 'text/csv; charset=utf-8')
  t.equal((await api.call('GET', `${path}/${text}.csv`)).text, csv.text)
  const rows = csv.text.trimEnd().split('\r\n')
  t.equal(rows.length, 1 + invoice.lines.length + 3)
  t.match(rows.at(-1), new RegExp(`^NL-000001,final,${first.tenant_id},EUR,total,.*,${invoice.total},`))
  for (const variant of [
    { name: `${text}.pdf`, headers: {} },
    { name: text, headers: { accept: 'application/pdf' } },
  ]) {
    const pdf = await api.call('GET', `${path}/${variant.name}`, variant)
    t.same(
      [pdf.status, pdf.headers['content-type'], pdf.headers['content-disposition']],
      [200, 'application/pdf', 'inline; filename="invoice-NL-000001.pdf"'],
    )
    t.ok(pdf.text.startsWith('%PDF-'))
  }
  t.equal((await api.call('GET', `${path}.csv`)).text.split('\r\n').length, 3)
  isError(
    t,
    await api.call('GET', `${path}/${text}`, { headers: { accept: 'image/png' } }),
    406,
    'NOT_ACCEPTABLE',
    'application/json',
    'not acceptable',
  )
  isError(
    t,
    await api.call('GET', path, { headers: { accept: 'application/pdf' } }),
    406,
    'NOT_ACCEPTABLE',
    'application/json',
    'not acceptable',
  )
  isError(t, await api.call('GET', `${path}/${text}.xml`), 404, 'NOT_FOUND', 'xml', 'not found')
  isError(t, await api.call('GET', `${path}/${text}x.pdf`), 404, 'INVOICE_NOT_FOUND', 'invoice', 'invoice not found')
  isError(
    t,
    await api.call('GET', `/v1/tenants/${second.tenant_id}/invoices/${invoice.invoice_id}`),
    404,
    'INVOICE_NOT_FOUND',
    'invoice',
    "another tenant's",
  )
})

t.test('The database rejects every change and removal of a final invoice', async (t) => {
  for (const change of [
    "update invoices set content = '{}'",
    'update invoices set number = 7',
    "update invoices set state = 'draft', number = null, label = null, final_at = null",
    'delete from invoices',
    'truncate invoices cascade',
  ]) {
    await t.rejects(api.sql(change), /invoices are kept|does not change/, change)
  }
})

t.test('A void invoice keeps its number, and the next invoice of its month gets a new one', async (t) => {
  const { invoice_id: id } = (await api.call('GET', `${path}/${text}`)).body as InvoiceBody
  isError(
    t,
    await api.call('POST', `${path}/${id}/void`, { body: {} }),
    400,
    'MISSING_FIELD',
    'reason',
    'missing field',
  )
  const voided = await api.call('POST', `${path}/${id}/void`, { body: { reason: 'wrong address' } })
  t.match(voided.body, { invoice_id: id, state: 'void', number: 'NL-000001', void_reason: 'wrong address' })
  isError(
    t,
    await api.call('POST', `${path}/${id}/void`, { body: { reason: 'again' } }),
    409,
    'INVOICE_NOT_FINAL',
    'void',
    'invoice not final',
  )
  isError(t, await api.call('GET', `${path}/${text}`), 404, 'INVOICE_NOT_FOUND', 'invoice', 'invoice not found')
  await api.makeInvoices()
  t.same(
    await api.sql('select count(*)::int as count from invoices where tenant_id = $1', [first.tenant_id]),
    [{ count: 1 }],
    'the leader does not replace a void invoice',
  )
  t.match(await made(first.tenant_id), { state: 'final', number: 'NL-000003', buyer: { name: 'Another' } })
  await t.rejects(
    api.sql("update invoices set state = 'final', voided_at = null, void_reason = null where state = 'void'"),
    /does not change/,
  )
})

t.test('The leader creates each missing invoice once and sends a webhook for each', async (t) => {
  const mine = await api.sql('select tenant_id, number, state from invoices order by number')
  t.same(mine, [
    { tenant_id: first.tenant_id, number: 1, state: 'void' },
    { tenant_id: second.tenant_id, number: 2, state: 'final' },
    { tenant_id: first.tenant_id, number: 3, state: 'final' },
  ])
  await api.makeInvoices()
  t.same(await api.sql('select tenant_id, number, state from invoices order by number'), mine)
  t.same(
    (
      await api.sql("select data->>'number' as number from operator_events where type = 'invoice.final' order by 1")
    ).map(({ number }) => number),
    ['NL-000001', 'NL-000002', 'NL-000003'],
  )
  t.same(api.warnings, [])
})

t.test('Late usage is a correction on the next invoice, and the earlier invoice does not change', async (t) => {
  const before = await made(first.tenant_id)
  await api.count(first.tenant_id, thisHour, 1_111_111, 'gateway-that-was-cut-off')
  await api.closeUntil(new Date(next.getTime() + 4 * 3_600_000))
  const after = new Date(Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1, 1))
  await api.closeUntil(new Date(after.getTime() + 2 * 3_600_000))
  const following = await made(first.tenant_id, { month: next.toISOString().slice(0, 7) })
  const corrections = following.lines.filter(({ correction }) => correction)
  t.same(
    corrections.map(({ month: of, resource, quantity }) => [of, resource, quantity]),
    [[text, 'requests', '1111111']],
  )
  t.equal(
    corrections.reduce((sum, { amount }) => sum + readDecimalText(amount), 0n) + readDecimalText(before.net),
    await expected(first.tenant_id, 2_345_678n),
  )
  t.same((await api.call('GET', `${path}/${text}`)).body, before)
})

t.test('A replaced leader writes no invoice', async (t) => {
  const count = async () => (await api.counts())['invoices']
  const was = await count()
  await t.rejects(api.makeInvoices((await api.epoch()) - 1n), /Another control plane leads/)
  t.equal(await count(), was)
  await api.makeInvoices()
  t.equal(await count(), Number(was) + 1)
})

t.test('A deleted tenant keeps its invoices, and invoices created later have its name', async (t) => {
  const after = new Date(Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1, 1))
  const gone = await api.call('DELETE', `/v1/tenants/${second.tenant_id}?purge=true`, {
    headers: { prefer: 'wait=30' },
  })
  t.equal(gone.status, 202)
  isError(
    t,
    await api.call('GET', `/v1/tenants/${second.tenant_id}`),
    404,
    'TENANT_NOT_FOUND',
    'tenant',
    'tenant not found',
  )
  const end = new Date(Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 2, 1))
  await api.closeUntil(new Date(end.getTime() + 2 * 3_600_000))
  const last = await made(second.tenant_id, { month: after.toISOString().slice(0, 7) })
  t.match(last, { state: 'final', buyer: { name: second.name } })
  const list = (await api.call('GET', `/v1/tenants/${second.tenant_id}/invoices`)).body as {
    invoices: { month: string }[]
  }
  t.same(list.invoices.length, 3)
})

t.test('Without prices the API rejects invoices, previews and adjustments', async (t) => {
  const free = await startApi(t, { control: false })
  await free.sql(
    `insert into tenants (id, name, plan_id, region_id, isolation, created_at, updated_at)
      values ('t_00000000000000000001', 'one', 'Free', 'local', 'schema-per-tenant', '2026-01-01', '2026-01-01')`,
  )
  isError(
    t,
    await free.call('POST', '/v1/tenants/t_00000000000000000001/invoices/close', { body: { month: '2026-01' } }),
    422,
    'BILLING_OFF',
    'TENANTRY_PRICES_FILE',
    'billing off',
  )
  isError(
    t,
    await free.call('GET', '/v1/tenants/t_00000000000000000001/invoices/upcoming'),
    422,
    'BILLING_OFF',
    'TENANTRY_PRICES_FILE',
    'no preview',
  )
  isError(
    t,
    await free.call('PUT', '/v1/tenants/t_00000000000000000001/spending-limit', { body: { amount: '1' } }),
    422,
    'BILLING_OFF',
    'TENANTRY_PRICES_FILE',
    'no spending limit',
  )
  isError(
    t,
    await free.call('POST', '/v1/tenants/t_00000000000000000001/adjustments', {
      body: { description: 'x', amount: '1' },
    }),
    422,
    'BILLING_OFF',
    'TENANTRY_PRICES_FILE',
    'no adjustment',
  )
})
