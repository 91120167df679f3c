// A whole installation passes the ends of two months: first undisturbed, then with a control plane that is killed repeatedly.
// The test moves the platform's clock by weeks; the gateways keep the machine's clock.
import { readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import pg from 'pg'
import t, { type Test } from 'tap'
import type { InvoiceBody } from '#control-plane/billing/invoice-body.ts'
import { openShell } from '#test/docs/support/shell-session.ts'
import { shellBlocks } from '#test/docs/support/shell-blocks.ts'
import { pdfRows } from '#test/billing/support/pdf-chunks.ts'
import { effort } from '#test/support/effort.ts'
import { createMovedClock } from '#test/support/moved-clock.ts'
import { startPlatform } from '#test/support/platform.ts'
import { query } from '#test/support/postgres.ts'
import { startWebhookReceiver } from '#test/support/webhook-receiver.ts'
import {
  first,
  last,
  next,
  prices,
  tallyOf,
  textOf,
  type Customer,
  type UsageResponse,
} from './support/billed-customers.ts'

const [second, hour, day] = [1_000, 3_600_000, 86_400_000]
const quota = 40
const fileBytes = 30_000
const began = new Date(first.getTime() + 16 * day + 9 * hour)

const folder = t.testdir({ 'prices.json': JSON.stringify(prices), checkout: {} })
/** Root of a checkout in which the documented commands run and write files. */
const checkout = join(folder, 'checkout')
for (const name of ['package.json', 'node_modules', 'control-plane', 'scripts'])
  await symlink(new URL(`../../${name}`, import.meta.url).pathname, join(checkout, name))
const clock = await createMovedClock(began)
const receiver = await startWebhookReceiver(t)
const platform = await startPlatform({
  clock,
  gateways: 2,
  logLevel: 'error',
  control: { TENANTRY_PRICES_FILE: join(folder, 'prices.json'), TENANTRY_WEBHOOKS_MAY_REACH: '127.0.0.0/8' },
})
t.teardown(async () => {
  await platform.stop()
  await clock.remove()
})
const control = platform.postgres.url('control')
const sql = (text: string, values: unknown[] = []) => query(control, text, values)
await sql("update plans set requests_per_month = $1 where id = 'Free'", [quota])
let plane = await platform.startControlPlane()
const webhook = await platform.call('POST', '/v1/webhooks', {
  url: receiver.url,
  types: ['quota.reached', 'invoice.final'],
})
receiver.secret = String(webhook.body['secret'])

const [small, big, grown] = [await create('small', 'Free'), await create('big', 'Pro'), await create('grown', 'Free')]
/** A tenant whose requests make the gateways call the control plane. */
const other = await create('other', 'Enterprise')
const customers = [small, big, grown]
const invoicesOfMonth = customers.length + 1

async function create(name: string, plan: string): Promise<Customer> {
  const { body } = await platform.call('POST', '/v1/tenants', { name, plan, region: 'local' }, { prefer: 'wait=30' })
  const { secret_key: key } = body['keys'] as { secret_key: string }
  return { id: String(body['tenant_id']), name, key, sent: new Map() }
}

let turn = 0
/** Sends a request through the gateways in turn and counts it. @returns the status of the response */
async function request(customer: Customer, month: Date, method: string, path: string, body?: string): Promise<number> {
  const tally = tallyOf(customer, textOf(month))
  const response = await platform.tenantCall(customer.name, method, path, {
    key: customer.key,
    gateway: turn++ % 2,
    ...(body === undefined ? {} : { body, type: path.endsWith('/bucket') ? 'application/json' : 'text/plain' }),
  })
  const { byteLength } = await response.arrayBuffer()
  if (response.status === 429) tally.refused++
  else {
    tally.served++
    tally.bytes += byteLength
  }
  return response.status
}

const download = (customer: Customer, month: Date) =>
  request(customer, month, 'GET', '/storage/v1/object/files/kept.txt')

async function downloads(customer: Customer, month: Date, count: number): Promise<number[]> {
  const statuses: number[] = []
  while (statuses.length < count) statuses.push(await download(customer, month))
  return statuses
}

/** Waits for a state for up to a minute. @param pass runs between two checks */
async function until(
  holds: () => Promise<boolean> | boolean,
  what: string,
  pass: () => Promise<unknown> = () => wait(20),
): Promise<void> {
  const deadline = Date.now() + 60_000
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error(`not within a minute: ${what}\n${platform.output().slice(-3000)}`)
    await pass()
  }
}

/** Sets the clock and waits until both gateways have called the control plane after that. */
async function moveTo(at: Date): Promise<void> {
  await clock.moveTo(at)
  const received = 'select count(*)::int as count from usage_sources where tenant_id is null and last_seen_at >= $1'
  for (const gateway of [0, 1])
    await platform.tenantCall(other.name, 'GET', '/storage/v1/bucket', { key: other.key, gateway })
  await until(
    async () => (await sql(received, [at.toISOString()]))[0]?.['count'] === 2,
    'the gateways call the control plane',
  )
}

/** Moves the clock by two minutes. */
const someTime = async () => {
  await clock.moveTo(new Date(clock.now().getTime() + 120 * second))
  await wait(60)
}

const usage = async ({ id }: Customer, path: string) =>
  (await platform.call('GET', `/v1/tenants/${id}/usage${path}`)).body as unknown as UsageResponse

const get = (path: string) =>
  fetch(`${platform.controlUrl}${path}`, { headers: { authorization: `Bearer ${platform.platformKey}` } })
const finals = () => receiver.messages.filter(({ type }) => type === 'invoice.final')
const invoicesOf = async (month: Date) =>
  sql('select tenant_id, state, number::int, label from invoices where month = $1 order by number', [
    month.toISOString(),
  ])

/** Downloads the invoice and its hours and verifies them with the commands of docs/invoices.md. */
async function verify(customer: Customer, month: string): Promise<string> {
  const block = (await shellBlocks('docs/invoices.md')).find(({ text }) => text.includes('verify-invoice'))
  if (block === undefined) throw new Error('docs/invoices.md has no block with verify-invoice.')
  const shell = openShell(checkout, { CONTROL: platform.controlUrl, KEY: platform.platformKey, ID: customer.id })
  return shell.run(block.text.replaceAll('2026-10', month))
}

/** Asserts that usage, invoice, PDF and verify-invoice agree with the requests that were sent in the month. */
async function checkMonth(t: Test, customer: Customer, month: Date): Promise<void> {
  const [sent, text] = [tallyOf(customer, textOf(month)), textOf(month)]
  const used = await usage(customer, `/${text}`)
  t.match(used, { month: text, incomplete: false, missing_sources: [] })
  t.same(
    [used.resources.api_requests.count, used.resources.api_requests.refused, used.resources.egress.bytes],
    [sent.served, sent.refused, sent.bytes],
    `${customer.name}: the counts equal the requests sent`,
  )

  const path = `/v1/tenants/${customer.id}/invoices/${text}`
  const exported = await (await get(`${path}.json`)).text()
  const invoice = JSON.parse(exported) as InvoiceBody
  t.match(invoice, { month: text, state: 'final', tenant_id: customer.id })
  const quantity = (resource: string) =>
    invoice.lines
      .filter((line) => line.resource === resource)
      .reduce((sum, line) => sum + BigInt(line.quantity ?? 0), 0n)
  t.equal(quantity('requests'), BigInt(sent.served), `${customer.name}: the invoice equals the requests sent`)
  t.equal(Number(quantity('files') / 3600n), used.resources.storage.files_byte_hours)

  const rows = pdfRows(Buffer.from(await (await get(`${path}.pdf`)).arrayBuffer()))
  const figure = (name: string) => rows.find(([head]) => head === name)?.at(-1)
  t.equal(figure('Amount due'), `EUR ${invoice.payable}`)
  t.ok(rows.flat().includes(String(invoice.number)), `the PDF contains ${String(invoice.number)}`)

  t.match(await verify(customer, text), /every recomputed figure is the same/)
  t.equal(await readFile(join(checkout, 'invoice.json'), 'utf8'), exported)
}

t.test('An undisturbed platform closes and invoices a month', { timeout: 120_000 }, async (t) => {
  for (const customer of customers) {
    t.equal(await request(customer, first, 'POST', '/storage/v1/bucket', '{"name":"files","policy":"public"}'), 201)
    t.equal(await request(customer, first, 'POST', '/storage/v1/object/files/kept.txt', 'x'.repeat(fileBytes)), 200)
  }
  const stored = clock.now()
  await downloads(grown, first, 3)
  await moveTo(new Date(first.getTime() + 20 * day))
  t.equal((await platform.call('PATCH', `/v1/tenants/${grown.id}`, { plan: 'Pro' }, { prefer: 'wait=30' })).status, 200)
  await downloads(grown, first, 30)
  const responses = await downloads(small, first, quota + 6)
  t.equal(
    responses.filter((status) => status === 200).length,
    quota - 2,
    'requests up to the Free quota are served, and no more',
  )
  await downloads(big, first, 25)

  await moveTo(new Date(next.getTime() - hour))
  t.equal(await download(small, first), 429, 'an exhausted quota stays exhausted until the end of the month')
  await clock.moveTo(new Date(next.getTime() - 4 * second))
  // Pro sends requests over the end of the month, where a request in progress may count in either month.
  let atTheEdge = 0
  while (clock.now().getTime() < next.getTime() + second) {
    const month = clock.now() < next ? first : next
    if (Math.abs(clock.now().getTime() - next.getTime()) < 500) atTheEdge++
    await download(big, month)
    await wait(20)
  }
  t.ok(atTheEdge > 0)

  await t.test('The new month has its own quota and uses no lease of the old month', async (t) => {
    t.equal(await download(small, next), 200)
    const leased = (month: Date) =>
      sql(
        "select coalesce(sum(used), 0)::int as used from request_leases where tenant_id = $1 and to_char(month, 'YYYY-MM') = $2",
        [small.id, textOf(month)],
      )
    await until(async () => (await leased(next))[0]?.['used'] === 1, 'the new lease is reported')
    t.same(await leased(first), [{ used: quota }])
    t.same(await downloads(small, next, 3), [200, 200, 200])
    const used = await usage(small, '')
    t.equal(used.month, textOf(next))
    await until(
      async () => (await usage(small, '')).resources.api_requests.count === 4,
      'the new month counts from zero',
    )
  })

  await until(
    async () => (await invoicesOf(first)).length === invoicesOfMonth && finals().length === invoicesOfMonth,
    'invoices are created and webhooks sent',
    someTime,
  )
  t.ok(clock.now().getTime() < next.getTime() + hour, `all is done by ${clock.now().toISOString()}`)

  await t.test('Usage, invoices, PDFs and verify-invoice agree with the requests sent', async (t) => {
    const [ended, begun] = [await usage(big, `/${textOf(first)}`), await usage(big, `/${textOf(next)}`)]
    const [before, since] = [tallyOf(big, textOf(first)), tallyOf(big, textOf(next))]
    t.equal(
      ended.resources.api_requests.count + begun.resources.api_requests.count,
      before.served + since.served,
      'each request around the end of the month counts once',
    )
    const crossed = ended.resources.api_requests.count - before.served
    t.ok(Math.abs(crossed) <= atTheEdge, `${crossed} of ${atTheEdge} requests around the end count in the other month`)
    before.served += crossed
    since.served -= crossed
    before.bytes += crossed * fileBytes
    since.bytes -= crossed * fileBytes
    for (const customer of customers) await checkMonth(t, customer, first)
    t.same(
      (await invoicesOf(first)).map(({ state, label }) => [state, label]),
      [1, 2, 3, 4].map((number) => ['final', `NL-00000${number}`]),
    )
    const { resources } = await usage(small, `/${textOf(first)}`)
    const whole = (fileBytes * (next.getTime() - stored.getTime())) / hour
    t.ok(
      Math.abs(resources.storage.files_byte_hours - whole) < (fileBytes * 30 * second) / hour,
      'a file counts from its upload to the end of the month',
    )
  })

  await t.test('An invoice after a plan change has a period for each plan', async (t) => {
    const invoice = (await (await get(`/v1/tenants/${grown.id}/invoices/${textOf(first)}.json`)).json()) as InvoiceBody
    const periods = invoice.basis.months[0]?.plan_periods ?? []
    t.same(
      periods.map(({ plan }) => plan),
      ['Free', 'Pro'],
    )
    t.equal(periods[0]?.until, periods[1]?.since)
    t.equal(periods[1]?.until, next.toISOString())
  })

  await t.test('The webhook receives each invoice once with a signature', async (t) => {
    t.same(
      finals()
        .map(({ data }) => data['number'])
        .sort(),
      [1, 2, 3, 4].map((number) => `NL-00000${number}`),
    )
    t.ok(finals().every(({ isSigned, at }) => isSigned && at >= next))
    t.same(new Set(finals().map(({ data }) => data['tenant_id'])), new Set([...customers, other].map(({ id }) => id)))
    t.match(
      receiver.messages.filter(({ type }) => type === 'quota.reached'),
      [{ isSigned: true, data: { tenant_id: small.id, month: textOf(first) } }],
    )
  })
})

/** Tables in the order in which a close writes them: hours, months, invoices with their numbers, events. */
const steps = ['usage_months', 'usage_tenants', 'invoices', 'operator_events']

/** Kills the control plane when it waits for a lock on the table, or when `when` holds, and starts it again. */
async function killAt(table: string, when?: () => boolean): Promise<void> {
  const holder = new pg.Client({ connectionString: control })
  await holder.connect()
  const waits = `select 1 from pg_locks l join pg_class c on c.oid = l.relation where c.relname = '${table}' and not l.granted`
  try {
    if (when === undefined) await holder.query(`begin; lock table ${table} in share row exclusive mode`)
    await until(
      async () => when?.() ?? (await holder.query(waits)).rows.length > 0,
      `the control plane is at ${table}`,
      someTime,
    )
    plane.process.kill('SIGKILL')
    await plane.exited
  } finally {
    await holder.end()
  }
  plane = await platform.startControlPlane()
}

t.test(
  'A control plane that is killed at each step of a close invoices the month without a gap',
  { timeout: 120_000 },
  async (t) => {
    await downloads(big, next, 12)
    await downloads(grown, next, 7)
    await moveTo(new Date(last.getTime() - hour))
    t.same(
      await downloads(small, next, 5),
      Array.from({ length: 5 }, () => 200),
    )
    await moveTo(new Date(last.getTime() - 2 * second))
    await until(() => clock.now().getTime() >= last.getTime() + second, 'the end of the month')
    for (const customer of customers) t.same(await downloads(customer, last, 4), [200, 200, 200, 200])

    for (const [nth, step] of steps.entries()) if ((nth + 1) % effort({ small: 5, full: 1 }) === 0) await killAt(step)
    receiver.isSilent = true
    const received = new Set(receiver.messages.map(({ id }) => id))
    await killAt('nothing', () => receiver.messages.some(({ id }) => !received.has(id)))
    receiver.isSilent = false
    const delivered = () =>
      sql(
        `select count(*)::int as count from webhook_deliveries d join operator_events e on e.id = d.event_id
          where e.type = 'invoice.final' and d.state = 'delivered'`,
      )
    await until(
      async () =>
        (await invoicesOf(last)).length === 0 &&
        (await invoicesOf(next)).length === invoicesOfMonth &&
        (await delivered())[0]?.['count'] === 2 * invoicesOfMonth,
      'invoices are created and webhooks sent',
      someTime,
    )

    for (const customer of customers) await checkMonth(t, customer, next)
    t.same(
      await sql('select number::int, state from invoices order by number'),
      [1, 2, 3, 4, 5, 6, 7, 8].map((number) => ({ number, state: 'final' })),
      'numbers without a gap',
    )
    const ids = new Map(finals().map(({ id, data }) => [id, data['number']]))
    t.same(
      [...ids.values()].sort(),
      [1, 2, 3, 4, 5, 6, 7, 8].map((number) => `NL-00000${number}`),
      'each invoice is one event',
    )
    t.ok(finals().length > ids.size, 'a webhook without a response is sent again')
    t.ok(receiver.messages.every(({ isSigned }) => isSigned))
    for (const customer of customers) {
      const begun = async () => (await usage(customer, '')).resources.api_requests.count
      // A gateway waits longer after each failed call to the control plane.
      await until(async () => (await begun()) >= 4, 'the gateways push their counts')
      t.equal(await begun(), 4, `${customer.name}: the current month counts only its own requests`)
    }
  },
)

t.test('All times in the control database come from the moved clock', async (t) => {
  // Migrations wrote some tables before. "changes" has the time of Postgres, which also removes its rows.
  const columns = (await sql(`select table_name, column_name from information_schema.columns
      where table_schema = 'public' and data_type = 'timestamp with time zone'
    and table_name not in ('_prisma_migrations', 'plans', 'installation', 'regions', 'usage_closing', 'changes') order by 1, 2`)) as {
    table_name: string
    column_name: string
  }[]
  t.ok(columns.length > 30)
  for (const { table_name: table, column_name: column } of columns) {
    const [row] = await sql(
      `select min("${column}") as first, max("${column}") as last from "${table}" where isfinite("${column}")`,
    )
    const { first: earliest, last: latest } = row as { first: Date | null; last: Date | null }
    if (earliest === null || latest === null) continue
    t.ok(earliest >= first, `${table}.${column} from ${earliest.toISOString()}`)
  }
})
