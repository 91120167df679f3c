// A batch of invoices. Each equals the invoice that is created alone, an error of one tenant does not affect the others,
// and the number of queries does not depend on the number of tenants.
import t from 'tap'
import { createBilling, type BillingDeps } from '#control-plane/billing/billing.ts'
import { readDecimalText } from '#control-plane/billing/money.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { createTenantNames } from '#control-plane/tenants/store-names.ts'
import { startBilledApi } from './support/billed-api.ts'
import { amounts, billingConfig } from './support/prices.ts'
import { cent, referenceCost } from './support/reference.ts'

const api = await startBilledApi(t)
const { month, next } = api
const third = new Date(Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 1, 1))
const end = new Date(Date.UTC(next.getUTCFullYear(), next.getUTCMonth() + 2, 1))
const thisHour = new Date(Math.floor(Date.now() / 3_600_000) * 3_600_000)
const tenants: { id: string; requests: bigint; late: bigint }[] = []
for (let nth = 0; nth < 8; nth++) {
  const { tenant_id: id } = await api.create(undefined, {
    plan: nth % 3 === 0 ? 'Pro' : 'Free',
    isolation: 'schema-per-tenant',
  })
  tenants.push({ id, requests: BigInt(20_000 + nth * 1_111), late: nth % 2 === 0 ? BigInt(5_000 + nth) : 0n })
}
const [broken] = tenants.slice(-1)
if (broken === undefined) throw new Error('there are no tenants')
const whole = tenants.slice(0, -1)
const netsOf = async (of: Date) =>
  new Map(
    (await api.sql("select tenant_id, content->>'net' as net from invoices where month = $1", [of])).map(
      ({ tenant_id: id, net }) => [id, readDecimalText(String(net))],
    ),
  )
const costOf = async (id: string, of: Date, requests: bigint) => {
  const until = new Date(Date.UTC(of.getUTCFullYear(), of.getUTCMonth() + 1, 1))
  return referenceCost(
    of,
    await api.billing.history.periods(id, of, until),
    requests === 0n ? [] : [{ hour: thisHour, amounts: amounts({ requests }) }],
    cent,
  )
}

t.test(
  'A tenant with modified hours gets no invoice and a warning; all others get theirs, numbered without a gap',
  async (t) => {
    for (const { id, requests } of tenants) await api.count(id, thisHour, Number(requests))
    await api.closeUntil(new Date(next.getTime() + 2 * 3_600_000))
    await api.sql('alter table usage_months disable trigger usage_months_closed')
    await api.sql("update usage_months set previous = repeat('1', 64) where tenant_id = $1", [broken.id])
    await api.makeInvoices()
    t.same(api.warnings, ['The invoice of a tenant could not be made. The work is retried.'])
    const nets = await netsOf(month)
    for (const { id, requests } of whole) t.equal(nets.get(id), await costOf(id, month, requests), id)
    t.notOk(nets.has(broken.id))
    t.same(await api.sql('select count(*)::int as made, min(number) as first, max(number) as last from invoices'), [
      { made: whole.length, first: 1, last: whole.length },
    ])

    await api.sql("update usage_months set previous = repeat('0', 64) where tenant_id = $1", [broken.id])
    await api.makeInvoices()
    t.equal((await netsOf(month)).get(broken.id), await costOf(broken.id, month, broken.requests))
    t.same(await api.sql('select count(*)::int as made, max(number) as last from invoices'), [
      { made: tenants.length, last: tenants.length },
    ])
    t.same(await api.sql("select count(*)::int as events from operator_events where type = 'invoice.final'"), [
      { events: tenants.length },
    ])
  },
)

t.test('Corrections and charges are only on the invoices of their tenants', async (t) => {
  for (const { id, late } of tenants)
    if (late > 0n) await api.count(id, thisHour, Number(late), 'gateway-that-was-cut-off')
  await api.closeUntil(new Date(third.getTime() + 2 * 3_600_000))
  const [first] = tenants
  await api.count(first?.id ?? '', thisHour, 77_777, 'another-gateway')
  await api.closeUntil(new Date(end.getTime() + 2 * 3_600_000))
  const charged = tenants[1]?.id ?? ''
  t.equal(
    (
      await api.call('POST', `/v1/tenants/${charged}/adjustments`, {
        body: { description: 'a charge', amount: '1.25' },
      })
    ).status,
    201,
  )
  await api.makeInvoices()
  const [seconds, thirds] = [await netsOf(next), await netsOf(third)]
  for (const { id, requests, late } of tenants) {
    const corrected = (await costOf(id, month, requests + late)) - (await costOf(id, month, requests))
    t.equal(
      seconds.get(id),
      (await costOf(id, next, 0n)) + corrected + (id === charged ? 1_250_000n : 0n),
      `second month of ${id}`,
    )
    const more =
      id === first?.id
        ? (await costOf(id, month, requests + late + 77_777n)) - (await costOf(id, month, requests + late))
        : 0n
    t.equal(thirds.get(id), (await costOf(id, third, 0n)) + more, `third month of ${id}`)
  }
  t.ok(tenants.some(({ late }) => late > 0n))
})

t.test('A batch needs the same number of queries for one tenant as for many', async (t) => {
  const database = openDatabase(api.controlUrl)
  t.teardown(() => database.$disconnect())
  const countQueries = async (ids: readonly string[]) => {
    let queries = 0
    const counting =
      <Args extends unknown[], Result>(request: (...args: Args) => Result) =>
      (...args: Args) => {
        queries++
        return request(...args)
      }
    const { usage, history, invoices, adjustments } = api.billing
    const deps: BillingDeps = {
      config: billingConfig,
      usage: { months: counting(usage.months), closedUntil: usage.closedUntil },
      history: { periodsOf: counting(history.periodsOf) },
      invoices: { pricesOf: counting(invoices.pricesOf), buyers: counting(invoices.buyers) },
      adjustments: { due: counting(adjustments.due) },
      namesOf: counting(createTenantNames(database)),
    }
    const composed = await createBilling(deps).composeAll(ids, third)
    t.same(
      composed.map(({ tenantId, content }) => [tenantId, content?.tenant_id]),
      ids.map((id) => [id, id]),
    )
    return queries
  }
  const ids = tenants.map(({ id }) => id)
  t.equal(await countQueries(ids), await countQueries(ids.slice(0, 1)))
})
