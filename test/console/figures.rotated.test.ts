// The figures of the console over a month of generated usage: those of the API, of the invoices, and of the generator, to the
// digit. Each seed is a property of its own.
import { randomUUID } from 'node:crypto'
import type { Counter } from '@tenantry/contract'
import type { Page } from 'playwright-core'
import t from 'tap'
import type { InvoiceBody, UpcomingBody } from '#control-plane/billing/invoice-body.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { createUsageLedger } from '#control-plane/usage/store-ledger.ts'
import { startBilledApi } from '#test/billing/support/billed-api.ts'
import { chanceOf, type Chance } from '#test/simulation/chance.ts'
import { effort, seed } from '#test/support/effort.ts'
import { pushOf } from '#test/usage/support/ledger.ts'
import { openBrowser, openConsole, signIn } from './support/open-console.ts'
import { openScreen } from './support/page-checks.ts'

const hourMilliseconds = 3_600_000
const tenants = effort({ small: 2, full: 12 })
t.comment(`seed ${seed}, ${tenants} tenants`)
const api = await startBilledApi(t)
const url = await api.app.listen({ host: '127.0.0.1', port: 0 })
// The last month that is over, so that the browser's own clock does not leave days out.
const end = api.month
const start = new Date(Date.UTC(end.getUTCFullYear(), end.getUTCMonth() - 1, 1))
const inLastHour = new Date(end.getTime() - hourMilliseconds / 2)
const month = start.toISOString().slice(0, 7)
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())
const setClock = (at: Date) => (api.clock.ahead = at.getTime() - Date.now())
const ledger = createUsageLedger(database, () => new Date(Date.now() + api.clock.ahead))

/** The meters that the console shows, with the titles of its charts, and the greatest count of an hour. */
const meters = [
  { meter: 'requests', amount: 'requests', title: 'Requests', max: 90_000 },
  { meter: 'egress_bytes', amount: 'egress_bytes', title: 'Egress, bytes', max: 4e9 },
  { meter: 'document_byte_seconds', amount: 'document_byte_seconds', title: 'Documents, byte-seconds', max: 8e15 },
  { meter: 'file_byte_seconds', amount: 'file_byte_seconds', title: 'Files, byte-seconds', max: 8e15 },
  { meter: 'realtime_messages', amount: 'realtime_messages', title: 'Realtime messages', max: 90_000 },
  { meter: 'function_invocations', amount: 'function_invocations', title: 'Function invocations', max: 5_000 },
] as const

/** Generates a month: busy and silent hours, and in each busy hour some of the meters. */
function generate(tenantId: string, chance: Chance): Counter[] {
  const counters: Counter[] = []
  for (let hour = start.getTime(); hour < end.getTime(); hour += hourMilliseconds) {
    if (chance.happens(0.6)) continue
    for (const { meter, max } of meters) {
      if (chance.happens(0.3)) continue
      const value = 1 + Math.floor(chance.next() ** 3 * max)
      const isRequests = meter === 'requests'
      counters.push({
        tenant_id: tenantId,
        hour: new Date(hour).toISOString(),
        meter: meter as Counter['meter'],
        group: isRequests || meter === 'egress_bytes' ? chance.pick(['rest', 'storage']) : '',
        method: isRequests ? chance.pick(['GET', 'POST']) : '',
        status_class: isRequests ? chance.pick(['2xx', '4xx']) : '',
        bucket: '',
        value,
      })
    }
  }
  return counters
}

/** Returns the exact sums of counters by meter, and by meter and day. */
function sumsOf(counters: readonly Counter[]): Map<string, bigint> {
  const sums = new Map<string, bigint>()
  for (const { meter, hour, value } of counters)
    for (const key of [meter, `${meter} ${hour.slice(0, 10)}`]) sums.set(key, (sums.get(key) ?? 0n) + BigInt(value))
  return sums
}

/** Returns the digits of a figure of the page, such as 1234567 of "1,234,567 bytes". */
const digits = (text: string) => (/-?[\d,]+(?:\.\d+)?/.exec(text)?.[0] ?? '').replaceAll(',', '')
/** Returns an amount without the zeros at its end, so that 1.50 and 1.500000 are equal. */
const amountOf = (text: string) =>
  digits(text)
    .replace(/(\.\d*?)0+$/, '$1')
    .replace(/\.$/, '')

/** Reads the cells of a table of the page, row by row. */
async function cells(page: Page, label: string): Promise<string[][]> {
  const table = page.locator(`.table-frame[aria-label="${label}"]`)
  await table.waitFor()
  return Promise.all((await table.locator('tbody tr').all()).map((row) => row.locator('td').allTextContents()))
}

async function get<Body>(path: string): Promise<Body> {
  const response = await api.call('GET', path)
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${response.text}`)
  return response.body as Body
}

const show = (page: Page, address: string) => openScreen(page, `${url}/${address}`)

/** Returns the amounts of an invoice's lines, and its sums, in the CSV file. */
async function csvAmounts(path: string): Promise<{ lines: string[]; net: string | undefined }> {
  const { text } = await api.call('GET', path)
  const [head = '', ...rows] = text.trim().split('\r\n')
  const column = head.split(',').indexOf('amount')
  const charge = head.split(',').indexOf('charge')
  // No cell before these columns contains a comma.
  const parsed = rows.map((row) => row.split(',')).map((row) => ({ charge: row[charge], amount: row[column] ?? '' }))
  const sums = ['net', 'tax', 'total', 'payable']
  return {
    lines: parsed.filter((row) => !sums.includes(row.charge ?? '')).map(({ amount }) => amountOf(amount)),
    net: parsed.find((row) => row.charge === 'net')?.amount,
  }
}

setClock(new Date(start.getTime() + 1000))
const plans = ['Pro', 'Free', 'Enterprise']
const generated = new Map<string, Counter[]>()
for (let nth = 0; nth < tenants; nth++) {
  const { tenant_id: id } = await api.create(undefined, { plan: plans[nth % plans.length] ?? 'Free' })
  generated.set(id, generate(id, chanceOf(seed + nth)))
}
setClock(inLastHour)
for (const counters of generated.values()) await ledger.record(pushOf('gateway-test', randomUUID(), counters))

const opened = await openConsole(await openBrowser(t), url)
const { page } = opened
await signIn(opened, api.keys.admin)

for (const [id, counters] of generated) {
  t.test(`Usage of ${id}: the page, the API and the generator agree`, async (t) => {
    const sums = sumsOf(counters)
    await show(page, `#/tenants/${id}/usage`)
    await page.getByLabel('Month').selectOption(month)
    const { parts } = await get<{ parts: { start: string; amounts: Record<string, string> }[] }>(
      `/v1/tenants/${id}/usage/${month}?granularity=day`,
    )
    for (const { meter, amount, title } of meters) {
      const shown = (await cells(page, `${title} by day`)).map(([day = '', value = '']) => [day, digits(value)])
      const days = [...sums].filter(([key]) => key.startsWith(`${meter} `))
      t.same(
        shown,
        days.map(([key, value]) => [key.slice(meter.length + 1), String(value)]).reverse(),
        `${title} by day, as generated`,
      )
      t.same(
        shown.toReversed(),
        parts.flatMap(({ start: day, amounts }) =>
          (amounts[amount] ?? '0') === '0' ? [] : [[day.slice(0, 10), amounts[amount]]],
        ),
        `${title} by day, as in the API`,
      )
    }
    const fact = async (name: string) =>
      digits(
        (await page
          .locator('dt', { hasText: name })
          .first()
          .locator('xpath=following-sibling::dd')
          .first()
          .textContent()) ?? '',
      )
    t.same(await fact('Egress'), String(sums.get('egress_bytes')))
    t.same(await fact('Function invocations'), String(sums.get('function_invocations')))
    const requests = page.locator('.quotas li', { hasText: 'API requests' }).locator('.quota-value')
    t.same(digits((await requests.textContent()) ?? ''), String(sums.get('requests')))
  })
}

t.test('The usage of all tenants, and its sum, are those of the generator', async (t) => {
  await show(page, '#/usage')
  await page.getByLabel('Month').selectOption(month)
  const rows = await cells(page, `Usage by tenant in ${month}`)
  t.same(
    rows.map(([, requests = '']) => digits(requests)).sort(),
    [...generated.values()].map((counters) => String(sumsOf(counters).get('requests'))).sort(),
  )
  await page.getByRole('button', { name: 'Add up all tenants' }).click()
  await page.getByRole('list', { name: 'Sum over all tenants' }).waitFor()
  const all = sumsOf([...generated.values()].flat())
  const tiles = await page.getByRole('list', { name: 'Sum over all tenants' }).locator('.tile-number').allTextContents()
  t.same(
    tiles.map(digits),
    meters.map(({ meter }) => String(all.get(meter))),
  )
})

for (const [id, counters] of generated) {
  t.test(`The upcoming invoice of ${id}: the page, the API and its CSV agree`, async (t) => {
    await api.closeUntil(inLastHour)
    const upcoming = await get<UpcomingBody>(`/v1/tenants/${id}/invoices/upcoming`)
    const asOf = upcoming.as_of
    t.same(asOf.slice(0, 7), month, 'it contains the hours of the month that are closed')
    await show(page, `#/tenants/${id}/invoices`)
    const shown = await cells(page, 'Lines of the upcoming invoice')
    t.same(
      shown.map(([charge, quantity, , amount = '']) => [charge, quantity, amountOf(amount)]),
      upcoming.lines.map((line) => [line.description, line.quantity_text ?? '–', amountOf(line.amount)]),
    )
    t.same(digits((await page.locator('.totals-sum').textContent()) ?? ''), upcoming.payable)
    const file = await csvAmounts(`/v1/tenants/${id}/invoices/upcoming.csv`)
    t.same(
      file.lines,
      upcoming.lines.map(({ amount }) => amountOf(amount)),
    )
    t.same(file.net, upcoming.net)
    const requests = counters.filter(({ meter, hour }) => meter === 'requests' && hour < asOf)
    t.same(requestsOf(upcoming), sumsOf(requests).get('requests') ?? 0n, 'every request of a closed hour is in a line')
  })
}

t.test('The final invoices: the page, the API, the CSV and the usage agree', async (t) => {
  await api.closeUntil(new Date(end.getTime() + hourMilliseconds))
  await api.makeInvoices()
  t.same(api.warnings, [])
  for (const [id, counters] of generated) {
    const { invoices } = await get<{ invoices: InvoiceBody[] }>(`/v1/tenants/${id}/invoices`)
    const invoice = invoices.find((one) => one.month === month)
    if (invoice === undefined) throw new Error(`There is no invoice of ${id}.`)
    await show(page, `#/tenants/${id}/invoices`)
    const [shown = []] = (await cells(page, 'Invoices')).filter(([first]) => first === month)
    const { net, total, payable } = invoice
    t.same(shown.slice(3, 6).map(amountOf), [net, total, payable].map(amountOf), id)
    const path = `/v1/tenants/${id}/invoices/${invoice.invoice_id}`
    const body = await get<InvoiceBody>(`${path}.json`)
    t.same(body.net, net)
    t.same(requestsOf(body), sumsOf(counters).get('requests'), 'every generated request is in a line')
    const file = await csvAmounts(`${path}.csv`)
    t.same(
      file.lines,
      body.lines.map(({ amount }) => amountOf(amount)),
    )
    t.same(file.net, net)
  }
  t.same(opened.violations, [])
})

/** Returns the requests that the lines of an invoice contain. */
function requestsOf({ lines }: Pick<InvoiceBody, 'lines'>): bigint {
  return lines
    .filter(({ resource }) => resource === 'requests')
    .reduce((sum, { quantity }) => sum + BigInt(quantity ?? '0'), 0n)
}
