// The preview of the current month's invoice: from the closed hours and the current plan, never stored, and not an invoice.
import t from 'tap'
import type { InvoiceBody, UpcomingBody } from '#control-plane/billing/invoice-body.ts'
import { readDecimalText } from '#control-plane/billing/money.ts'
import { readExport } from '#control-plane/billing/read-export.ts'
import { verifyInvoice } from '#control-plane/billing/verify.ts'
import { isError } from '#test/support/control-plane/api.ts'
import { pdfChunks } from './support/pdf-chunks.ts'
import { startBilledApi } from './support/billed-api.ts'
import { amounts } from './support/prices.ts'
import { cent, referenceCost } from './support/reference.ts'

const api = await startBilledApi(t)
const { month: before, next: month } = api
const end = new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 1))
const name = month.toISOString().slice(0, 7)
const at = (days: number, hours = 0, minutes = 0) =>
  new Date(month.getTime() + ((days * 24 + hours) * 60 + minutes) * 60_000)
const thisHour = new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000)
const { tenant_id: id } = await api.create()
const path = `/v1/tenants/${id}/invoices`
const upcoming = async () => {
  const response = await api.call('GET', `${path}/upcoming`)
  if (response.status !== 200) throw new Error(`the preview failed with ${response.status}: ${response.text}`)
  return response.body as UpcomingBody
}
const costOf = async (of: Date, until: Date, usage: { hour: Date; requests: bigint }[]) =>
  referenceCost(
    of,
    await api.billing.history.periods(id, of, until),
    usage.map(({ hour, requests }) => ({ hour, amounts: amounts({ requests }) })),
    cent,
  )

t.test('A preview contains the usage of closed hours only and states their end', async (t) => {
  await api.count(id, thisHour, 500_000)
  await api.closeUntil(at(10, 0, 30))
  await api.makeInvoices()
  await api.count(id, at(9), 1_234_567)
  t.match(
    await upcoming(),
    {
      state: 'upcoming',
      number: null,
      as_of: at(9).toISOString(),
      month: name,
      tenant_id: id,
      lines: [{ charge: 'fee' }],
    },
    'usage of open hours is not in the preview',
  )
  await api.closeUntil(at(10, 0, 30))
  await api.count(id, at(10), 9_999_999)
  const preview = await upcoming()
  t.equal(preview.as_of, at(10).toISOString())
  t.equal(readDecimalText(preview.net), await costOf(month, end, [{ hour: at(9), requests: 1_234_567n }]))
  t.equal(preview.lines.find(({ resource }) => resource === 'requests')?.quantity, '10000')

  await api.sql(
    'insert into usage_sources (source, complete_until, first_seen_at, last_seen_at) values ($1, $2, now(), now())',
    ['gateway-behind', at(9, 5)],
  )
  t.equal((await upcoming()).as_of, at(9, 5).toISOString(), 'a source that is behind delays the closing of hours')
  await api.sql("update usage_sources set complete_until = $1 where source = 'gateway-behind'", [at(3)])
  t.equal((await upcoming()).as_of, at(9, 1).toISOString(), 'closed hours stay closed')
  await api.sql("delete from usage_sources where source = 'gateway-behind'")
})

t.test('A plan change counts from its second, and the current plan until the end of the month', async (t) => {
  await api.closeUntil(at(12, 0, 30))
  const changed = await api.call('PATCH', `/v1/tenants/${id}`, {
    body: { plan: 'Pro' },
    headers: { prefer: 'wait=30' },
  })
  t.equal(changed.status, 200, changed.text)
  const preview = await upcoming()
  t.same(
    preview.lines.filter(({ charge }) => charge === 'fee').map(({ plan, to }) => [plan, to === end.toISOString()]),
    [
      ['Free', false],
      ['Pro', true],
    ],
  )
  t.equal(
    readDecimalText(preview.net),
    await costOf(month, end, [
      { hour: at(9), requests: 1_234_567n },
      { hour: at(10), requests: 9_999_999n },
    ]),
  )
})

t.test('The preview contains late usage and adjustments, and the invoice equals it', async (t) => {
  const [usual] = [await upcoming()]
  await api.count(id, thisHour, 700_000, 'gateway-that-was-cut-off')
  const given = (
    await api.call('POST', `/v1/tenants/${id}/adjustments`, { body: { description: 'goodwill', amount: '-3.5' } })
  ).body as { adjustment_id: string }
  await api.closeUntil(at(13, 0, 30))
  const preview = await upcoming()
  const late =
    (await costOf(before, month, [{ hour: thisHour, requests: 700_000n + 500_000n }])) -
    (await costOf(before, month, [{ hour: thisHour, requests: 500_000n }]))
  t.equal(readDecimalText(preview.net), readDecimalText(usual.net) + late - 3_500_000n)
  t.same(
    preview.lines.filter(({ correction }) => correction).map(({ month: of }) => of),
    [before.toISOString().slice(0, 7)],
  )
  t.match(preview.lines.at(-1), { charge: 'adjustment', amount: '-3.500000', adjustment_id: given.adjustment_id })
  const exported = await Promise.all(
    [before.toISOString().slice(0, 7), name].map(async (of) =>
      readExport((await api.call('GET', `/v1/tenants/${id}/usage/${of}?granularity=hour`)).text),
    ),
  )
  t.same(
    verifyInvoice(preview, {
      hours: exported.flatMap(({ hours }) => hours),
      corrections: exported.flatMap(({ corrections }) => corrections),
    }),
    [],
  )

  await api.closeUntil(new Date(end.getTime() + 2 * 3_600_000))
  t.equal(
    (await upcoming()).lines.some(({ charge }) => charge === 'adjustment'),
    false,
    'the pending invoice of the month before gets the adjustment',
  )
  const invoice = (await api.call('POST', `${path}/close`, { body: { month: name } })).body as InvoiceBody
  t.same(invoice.lines, preview.lines)
  t.same([invoice.net, invoice.total], [preview.net, preview.total])
  const more = (await api.call('POST', `/v1/tenants/${id}/adjustments`, { body: { description: 'more', amount: '1' } }))
    .body as { adjustment_id: string }
  t.equal((await upcoming()).lines.at(-1)?.adjustment_id, more.adjustment_id)
})

t.test('A preview is available as JSON, CSV and PDF; it stores, numbers and bills nothing', async (t) => {
  const counts = await api.counts()
  const adjustments = await api.sql('select id, invoice_id from adjustments order by id')
  const json = await api.call('GET', `${path}/upcoming.json`, {
    key: api.keys.billing,
    headers: { accept: 'text/csv' },
  })
  t.equal(json.headers['content-type'], 'application/json; charset=utf-8')
  const { total, as_of: asOf, month: of } = json.body as UpcomingBody
  const csv = await api.call('GET', `${path}/upcoming`, { headers: { accept: 'text/csv' } })
  t.equal(csv.text, (await api.call('GET', `${path}/upcoming.csv`)).text)
  t.same(
    [csv.headers['content-type'], csv.headers['vary'], csv.headers['content-disposition']],
    ['text/csv; charset=utf-8', 'accept', `inline; filename="preview-${of}.csv"`],
  )
  const rows = csv.text.trimEnd().split('\r\n')
  t.ok(rows.slice(1).every((row) => row.startsWith(`,upcoming,${id},EUR,`)))
  t.ok(rows.at(-1)?.includes(`,${total},`) === true && rows.at(-1)?.includes(asOf) === true)
  const file = await api.app.inject({
    method: 'GET',
    url: `${path}/upcoming.pdf`,
    headers: { authorization: `Bearer ${api.keys.read}` },
  })
  t.same(
    [file.headers['content-type'], file.headers['content-disposition']],
    ['application/pdf', `inline; filename="preview-${of}.pdf"`],
  )
  t.ok(pdfChunks(file.rawPayload).some(({ text }) => text.includes('This is not an invoice')))
  isError(t, await api.call('GET', `${path}/upcoming.xml`), 404, 'NOT_FOUND', 'xml', 'not found')
  isError(
    t,
    await api.call('GET', `${path}/upcoming`, { headers: { accept: 'image/png' } }),
    406,
    'NOT_ACCEPTABLE',
    'application/json',
    'not acceptable',
  )
  isError(
    t,
    await api.call('GET', '/v1/tenants/t_00000000000000000000/invoices/upcoming'),
    404,
    'TENANT_NOT_FOUND',
    'tenant',
    'tenant not found',
  )
  t.same(await api.counts(), counts)
  t.same(await api.sql('select id, invoice_id from adjustments order by id'), adjustments)
})

t.test('The preview of a deleted tenant ends with its plan; the next month has no preview', async (t) => {
  const deleted = await api.call('DELETE', `/v1/tenants/${id}?purge=true`, { headers: { prefer: 'wait=30' } })
  t.equal(deleted.status, 202)
  const preview = await upcoming()
  const [fee] = preview.lines.filter(({ charge }) => charge === 'fee')
  t.ok(Date.parse(fee?.to ?? '') < Date.parse(preview.period.end))
  await api.closeUntil(new Date(Date.parse(preview.period.end) + 2 * 3_600_000))
  isError(t, await api.call('GET', `${path}/upcoming`), 404, 'INVOICE_NOT_FOUND', 'no plan', 'no plan in the month')
})
