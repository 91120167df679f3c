// Spending limits in the control plane: set by the API, compared with the upcoming invoice, reported to operators at 80 % and
// 100 %, and published to the gateways.
import { randomUUID } from 'node:crypto'
import t, { type Test } from 'tap'
import type { UpcomingBody } from '#control-plane/billing/invoice-body.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { createSpendingWatch } from '#control-plane/spending/jobs.ts'
import { checkSpending } from '#control-plane/spending/spending-limit.ts'
import { createSpendingStore } from '#control-plane/spending/store.ts'
import { startBilledApi } from '#test/billing/support/billed-api.ts'
import { isError, newName, type CreatedTenant } from '#test/support/control-plane/api.ts'

interface Limit {
  amount: string
  currency: string
  action: string
  month: string
  upcoming: string | null
  percent: number | null
  rejects_until: string | null
  checked_at: string | null
}

const api = await startBilledApi(t, { cloud: true })
const database = openDatabase(api.controlUrl)
t.teardown(() => database.$disconnect())
const now = () => new Date(Date.now() + api.clock.ahead)
const store = createSpendingStore({ database, now })
const log: string[] = []
const poll = async () =>
  createSpendingWatch(
    {
      store,
      billing: api.billing.billing,
      clock: { ...systemClock, now },
      log: { warn: (_details: object, message: string) => log.push(message) },
    },
    await api.epoch(),
  ).poll(new AbortController().signal)

const { next: month } = api
const monthName = month.toISOString().slice(0, 7)
const end = new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1, 1))
const at = (days: number, hours = 0) => new Date(month.getTime() + (days * 24 + hours) * 3_600_000)
await api.closeUntil(at(1, 0.5))
const shared = await api.create(newName('shared'))
const dedicated = await api.create(newName('dedicated'), { region: 'cloud', plan: 'Pro' })

const path = ({ tenant_id: id }: CreatedTenant) => `/v1/tenants/${id}/spending-limit`
const put = (tenant: CreatedTenant, amount: string, action?: string) =>
  api.call('PUT', path(tenant), { body: { amount, ...(action === undefined ? {} : { action }) } })
const read = async (tenant: CreatedTenant) => (await api.call('GET', path(tenant))).body as Limit
const upcoming = async ({ tenant_id: id }: CreatedTenant) =>
  (await api.call('GET', `/v1/tenants/${id}/invoices/upcoming`)).body as UpcomingBody
const condition = async ({ tenant_id: id }: CreatedTenant) =>
  (await api.tenant(id)).conditions.find(({ type }) => type === 'Spending')
const events = async ({ tenant_id: id }: CreatedTenant) =>
  (
    await api.sql(
      `select type, data from operator_events where tenant_id = $1 and type like 'spending.%' order by type desc`,
      [id],
    )
  ).map(({ type, data }) => [type, (data as { limit: string }).limit, (data as { upcoming: string }).upcoming])
/** Returns until when gateways reject the tenant's requests, as its published route states. */
const rejectedUntil = async ({ tenant_id: id }: CreatedTenant) =>
  (await api.published.some(new Set([id])))[0]?.route.limits?.spending_reached_until
const published = async ({ tenant_id: id }: CreatedTenant) =>
  Number(
    (
      await api.sql(`select count(*)::int as count from changes where kind = 'published' and tenant_id = $1`, [id])
    )[0]?.['count'],
  )
/** Gives a tenant a one-time charge, so that its upcoming invoice grows at once. */
const charge = async ({ tenant_id: id }: CreatedTenant, amount: string) => {
  const response = await api.call('POST', `/v1/tenants/${id}/adjustments`, { body: { description: 'setup', amount } })
  if (response.status !== 201) throw new Error(response.text)
}

t.test('An invalid limit is rejected with its error, and nothing is stored', async (t) => {
  const tenant = await api.create()
  isError(t, await api.call('GET', path(tenant)), 404, 'SPENDING_LIMIT_NOT_FOUND', 'no spending limit', 'none yet')
  isError(t, await api.call('DELETE', path(tenant)), 404, 'SPENDING_LIMIT_NOT_FOUND', 'no spending limit', 'none yet')
  const stored = async () => {
    const { spending_limits: limits, audit_log: entries } = await api.counts()
    return { limits, entries }
  }
  const before = await stored()
  for (const amount of ['0', '0.00', '-5', '1.001', '1e3', '', ' 5', '05', '1000000000', '99999999999999999999', 'ten'])
    isError(t, await put(tenant, amount), 400, 'INVALID_FIELD', `"${amount}"`, amount)
  for (const [body, code, names] of [
    [{ amount: 5 }, 'INVALID_FIELD', '"amount"'],
    [{ action: 'reject' }, 'MISSING_FIELD', '"amount"'],
    [{ amount: '5', action: 'stop' }, 'INVALID_FIELD', 'reject, notify'],
    [{ amount: '5', currency: 'EUR' }, 'UNKNOWN_FIELD', '"currency"'],
  ] as const)
    isError(t, await api.call('PUT', path(tenant), { body }), 400, code, names, JSON.stringify(body))
  isError(
    t,
    await api.call('PUT', '/v1/tenants/t_00000000000000000000/spending-limit', { body: { amount: '5' } }),
    404,
    'TENANT_NOT_FOUND',
    'no such tenant',
    'an unknown tenant',
  )
  t.same(await stored(), before)
})

const reaching = (tenant: CreatedTenant) => async (t: Test) => {
  const fee = await upcoming(tenant)
  const stated = await put(tenant, '100', 'reject')
  t.match(stated, { status: 200, body: { amount: '100.00', currency: 'EUR', action: 'reject', month: monthName } })
  t.equal((stated.body as Limit).upcoming, fee.payable, 'it is compared with the upcoming invoice at once')
  t.same([await condition(tenant), await events(tenant), await rejectedUntil(tenant)], [undefined, [], undefined])

  const net = (gross: number) => (gross / 1.205).toFixed(6)
  const total = () => upcoming(tenant).then(({ payable }) => Number(payable))
  await charge(tenant, net(79.9 - (await total())))
  await poll()
  t.equal(await condition(tenant), undefined, 'below 80 %')
  t.equal((await read(tenant)).upcoming, (await upcoming(tenant)).payable, 'the figure is that of the invoice')
  await charge(tenant, net(0.2))
  const quiet = await published(tenant)
  await poll()
  await poll()
  const warned = (await upcoming(tenant)).payable
  t.match(await condition(tenant), {
    status: 'True',
    reason: 'SpendingNearLimit',
    message: `The upcoming invoice of ${monthName} is ${warned} EUR, 80 % of the spending limit of 100.00 EUR.`,
  })
  t.same(await events(tenant), [['spending.warning', '100.00', warned]], 'reported once')
  t.equal(await rejectedUntil(tenant), undefined, 'a warning rejects nothing')
  t.equal(await published(tenant), quiet, 'and gateways receive nothing')

  await charge(tenant, net(20))
  await poll()
  await poll()
  const reached = (await upcoming(tenant)).payable
  t.match(await condition(tenant), { status: 'False', reason: 'SpendingLimitReached' })
  t.same(await events(tenant), [
    ['spending.warning', '100.00', warned],
    ['spending.reached', '100.00', reached],
  ])
  t.equal(await rejectedUntil(tenant), end.toISOString(), 'gateways reject the requests until the end of the month')
  t.equal(await published(tenant), quiet + 1)
  t.match(await read(tenant), { percent: 100, upcoming: reached, rejects_until: end.toISOString(), checked_at: String })
  t.equal((await api.tenant(tenant.tenant_id)).status, 'ready')

  const changed = await api.call('PATCH', `/v1/tenants/${tenant.tenant_id}`, {
    body: { drift_policy: 'report' },
    headers: { prefer: 'wait=30' },
  })
  t.match(changed.body, { operation: { state: 'succeeded' } }, 'the tenant can be changed')
  t.match(await condition(tenant), { reason: 'SpendingLimitReached' }, 'an observation keeps the condition')

  t.match((await put(tenant, '125.5')).body, { amount: '125.50', rejects_until: null })
  t.equal(await rejectedUntil(tenant), undefined, 'a higher limit admits the requests at once')
  t.equal(await condition(tenant), undefined)
  t.match(
    (await put(tenant, '90')).body,
    { amount: '90.00', rejects_until: end.toISOString() },
    'and a lower one rejects',
  )
  t.equal(await rejectedUntil(tenant), end.toISOString())
  t.match((await put(tenant, '90', 'notify')).body, { action: 'notify', rejects_until: null })
  t.equal(await rejectedUntil(tenant), undefined, 'with notify, nothing is rejected')
  await put(tenant, '90')
  t.equal((await api.call('DELETE', path(tenant))).status, 204)
  t.same([await condition(tenant), await rejectedUntil(tenant)], [undefined, undefined], 'without a limit, neither')
  const audit = await api.sql(
    `select action, detail from audit_log where target = $1 and action like '%spending_limit' order by seq`,
    [tenant.tenant_id],
  )
  t.same(audit.at(0), {
    action: 'tenant.set_spending_limit',
    detail: { amount: '100.00', currency: 'EUR', action: 'reject' },
  })
  t.same(audit.at(-1), { action: 'tenant.delete_spending_limit', detail: {} })
}

t.test('A shared tenant is warned at 80 % and rejected at 100 %', reaching(shared))
t.test('A dedicated tenant is warned at 80 % and rejected at 100 %', reaching(dedicated))

t.test('Usage reaches a limit when its hours are closed, and the next month begins without rejections', async (t) => {
  const tenant = await api.create()
  await put(tenant, '10')
  await api.count(tenant.tenant_id, at(1, 2), 100_000)
  await poll()
  t.match(await read(tenant), { percent: 0 }, 'the hour is open')
  await api.closeUntil(at(1, 4))
  await poll()
  t.match(await read(tenant), { upcoming: (await upcoming(tenant)).payable, rejects_until: end.toISOString() })
  t.ok(Number((await read(tenant)).percent) >= 100)
  await api.closeUntil(new Date(end.getTime() + 3_600_000))
  t.equal(await rejectedUntil(tenant), undefined, 'routes that are published in the next month reject nothing')
  t.match(
    await read(tenant),
    { upcoming: null, percent: null, rejects_until: null },
    'nothing is known of the month yet',
  )
  await poll()
  t.match(await read(tenant), {
    upcoming: '0.00',
    percent: 0,
    rejects_until: null,
    month: end.toISOString().slice(0, 7),
  })
  t.equal(await condition(tenant), undefined)
  await api.count(tenant.tenant_id, new Date(end.getTime() + 3_600_000), 100_000)
  await api.closeUntil(new Date(end.getTime() + 4 * 3_600_000))
  await poll()
  t.equal((await events(tenant)).length, 4, 'both levels are reported again in the next month')
})

t.test('A check of a limit that an operator changes meanwhile has no effect', async (t) => {
  const tenant = await api.create()
  await put(tenant, '10')
  await charge(tenant, '100')
  const limit = await store.get(tenant.tenant_id)
  if (limit === undefined) throw new Error('there is no limit')
  const thisMonth = new Date(Date.UTC(now().getUTCFullYear(), now().getUTCMonth(), 1))
  const check = checkSpending(limit, 120_500_000n, thisMonth, now())
  api.clock.ahead += 1_000
  await put(tenant, '500')
  await store.apply({ limit, check }, await api.epoch())
  t.match(await read(tenant), { amount: '500.00', rejects_until: null })
  t.same([await condition(tenant), await rejectedUntil(tenant)], [undefined, undefined])
})

t.test('The invoice of a tenant that fails does not stop the checks of others', async (t) => {
  const [broken, other] = [await api.create(), await api.create()].sort((a, b) => (a.tenant_id < b.tenant_id ? -1 : 1))
  if (broken === undefined || other === undefined) throw new Error('there are two tenants')
  await put(broken, '10')
  await put(other, '10')
  await charge(other, '100')
  await api.sql(
    `insert into adjustments (id, tenant_id, description, amount_micro, currency, created_at)
      values ($1, $2, 'in another currency', 1000000, 'CHF', $3)`,
    [randomUUID(), broken.tenant_id, now()],
  )
  await poll()
  t.ok(
    log.some((message) => message.includes('spending limit was not checked')),
    'the failure is logged',
  )
  t.match(await condition(other), { reason: 'SpendingLimitReached' })
  isError(t, await put(broken, '20'), 500, 'INTERNAL', 'Internal error', 'a new limit of that tenant')
})
