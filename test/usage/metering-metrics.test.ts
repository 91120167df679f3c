// The control plane's metrics show what waits in metering, invoices, webhooks and quotas, and for how long.
import { randomUUID } from 'node:crypto'
import { internalPaths } from '@tenantry/contract'
import t from 'tap'
import { createClosing } from '#control-plane/billing/jobs.ts'
import { monthBefore, startOfMonth } from '#control-plane/platform/months.ts'
import { systemClock, type Clock } from '#control-plane/platform/clock.ts'
import { ControlError } from '#control-plane/platform/errors.ts'
import { createMetrics } from '#control-plane/metrics.ts'
import { createDispatcher } from '#control-plane/webhooks/jobs.ts'
import { emitOperatorEvent } from '#control-plane/webhooks/store-events.ts'
import { createWebhookOutbox } from '#control-plane/webhooks/store-outbox.ts'
import { closeLedger } from '#control-plane/usage/jobs-close-ledger.ts'
import { billingConfig } from '#test/billing/support/prices.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { pushOf, requests, startLedger } from './support/ledger.ts'
import { internalToken, startApi } from '#test/support/control-plane/api.ts'

const time = { now: new Date('2026-05-10T12:30:00Z') }
const now = () => time.now
const metrics = createMetrics({ all: () => new Map() }, now)
const { signal } = new AbortController()
const log = { info: () => undefined, warn: () => undefined }

/** Returns the lines of the metrics whose names begin with the prefix. */
function lines(text: string, prefix: string): string[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith(prefix))
    .map((line) => line.replace('tenantry_', ''))
}
const linesOf = async (prefix: string) => lines(await metrics.text(), `tenantry_${prefix}`)

t.test('the leader’s metrics show the age of open hours and months and the number of missing sources', async (t) => {
  const { ledger, closing, clock, tenant } = await startLedger(t)
  const id = await tenant('2026-04-20T00:00:00Z')
  await ledger.record(
    pushOf('gateway-1', randomUUID(), [requests(id, '2026-04-30T22:00:00Z', 3)], '2026-05-10T12:00:00Z'),
  )
  await ledger.record(pushOf('gateway-2', randomUUID(), [], '2026-04-30T23:00:00Z'))
  await ledger.recordHome({
    tenantId: id,
    boot: randomUUID(),
    hours: [],
    completeUntil: new Date('2026-05-10T11:00:00Z'),
  })
  t.same(await linesOf('usage_'), [], 'no metric exists before the first pass')

  /** Runs one pass of the leader, calls `after`, then takes the lead away. */
  const pass = async (after: () => Promise<void>) => {
    clock.now = time.now
    const lost = new AbortController()
    const passed = Promise.withResolvers<undefined>()
    const ticking: Clock = {
      ...systemClock,
      now,
      sleep: (_, stop) => {
        passed.resolve(undefined)
        return new Promise((_resolve, reject) => stop?.addEventListener('abort', () => reject(new Error('over'))))
      },
    }
    const loop = closeLedger({ closing, clock: ticking, measure: metrics.metering.ledger, log })({
      epoch: 0n,
      lost: lost.signal,
    })
    await passed.promise
    await after()
    lost.abort()
    await loop
  }
  const hour = 3_600
  await pass(async () => {
    const days = 9 * 24 * hour
    t.same(await linesOf('usage_'), [
      `usage_open_seconds ${days + 13.5 * hour}`,
      `usage_open_month_seconds ${days + 12.5 * hour}`,
      'usage_missing_sources{kind="gateway"} 1',
      'usage_missing_sources{kind="home"} 1',
    ])
    time.now = new Date('2026-05-10T12:31:00Z')
    t.match(
      await linesOf('usage_open_seconds'),
      [`usage_open_seconds ${days + 13.5 * hour + 60}`],
      'ages grow between two passes',
    )
  })
  t.same(await linesOf('usage_'), [], 'a control plane that no longer leads reports no metric')
  await ledger.record(pushOf('gateway-2', randomUUID(), [], '2026-05-10T12:00:00Z'))
  await ledger.recordHome({
    tenantId: id,
    boot: randomUUID(),
    hours: [],
    completeUntil: new Date('2026-05-10T12:00:00Z'),
  })
  await pass(async () => {
    t.same(await linesOf('usage_'), [
      `usage_open_seconds ${31 * 60}`,
      'usage_open_month_seconds 0',
      'usage_missing_sources{kind="gateway"} 0',
      'usage_missing_sources{kind="home"} 0',
    ])
  })
})

t.test('metrics count waiting and failed invoices by month, until they exist', async (t) => {
  const [month, before] = [monthBefore(startOfMonth(now())), monthBefore(monthBefore(startOfMonth(now())))]
  const errors = new Map<string, Error>([
    ['t_1', new ControlError('MONTH_NOT_CLOSED', 'not yet')],
    ['t_2', new Error('a broken chain')],
    ['t_3', new Error('a broken chain')],
  ])
  const finished = new Set<number>()
  const closing = createClosing(
    {
      billing: {
        composeAll: async (ids) =>
          ids.map((tenantId) => ({
            tenantId,
            content: undefined,
            error: errors.get(tenantId) ?? new Error('unknown'),
          })),
      },
      config: billingConfig,
      clock: { ...systemClock, now },
      log,
      measure: metrics.metering.invoices,
      ledger: {
        currenciesBut: async () => [],
        settled: async (_month, tenants) => new Set(tenants.filter((id) => !errors.has(id))),
        finished: async (at) => at < before || finished.has(at.getTime()),
        saveAll: () => Promise.reject(new Error('There is nothing to save.')),
        finish: async (at) => void finished.add(at.getTime()),
      },
      usage: { closedTenants: async () => [] },
      history: {
        tenants: async (from, _to, after) => (after !== '' ? [] : from < month ? ['t_3'] : ['t_1', 't_2', 't_4']),
      },
    },
    0n,
  )
  await closing.poll(signal)
  t.same(await linesOf('invoices_missing{'), [
    'invoices_missing{month="2026-03",reason="not_closed"} 0',
    'invoices_missing{month="2026-03",reason="failed"} 1',
    'invoices_missing{month="2026-03",reason="outdated"} 0',
    'invoices_missing{month="2026-04",reason="not_closed"} 1',
    'invoices_missing{month="2026-04",reason="failed"} 1',
    'invoices_missing{month="2026-04",reason="outdated"} 0',
  ])
  errors.clear()
  await closing.poll(signal)
  t.ok((await linesOf('invoices_missing{')).every((line) => line.endsWith(' 0')))
  await closing.poll(signal)
  t.same(await linesOf('invoices_missing{'), [], 'the metrics omit a month in which all tenants have their invoices')
})

t.test('webhooks', { timeout: 60_000 }, async (t) => {
  const api = await startApi(t)
  const database = openDatabase(api.controlUrl)
  t.teardown(() => database.$disconnect())

  t.test('each poll counts the pending and dead deliveries, with the age of the oldest', async (t) => {
    const { body } = await api.call('POST', '/v1/webhooks', { body: { url: 'https://billing.example/hooks' } })
    const outbox = createWebhookOutbox(database, api.seal, now)
    const response = { status: 503 }
    const dispatcher = createDispatcher({
      outbox,
      send: async () => ({ status: response.status, error: undefined }),
      clock: { ...systemClock, now },
      random: () => 0,
      measure: metrics.metering.webhooks,
      log,
    })
    const emitReady = (tenantId: string) =>
      emitOperatorEvent(
        database,
        {
          type: 'tenant.ready',
          tenantId,
          data: {
            tenant_id: tenantId,
            name: 'x',
            plan: 'Free',
            region: 'local',
            status: 'ready',
            previous_status: 'pending',
            reason: null,
          },
        },
        now(),
      )
    const later = async (seconds: number) => {
      time.now = new Date(time.now.getTime() + seconds * 1000)
      await dispatcher.poll(signal)
    }
    await later(0)
    t.same(await linesOf('webhook_'), [
      'webhook_deliveries{state="pending"} 0',
      'webhook_deliveries{state="dead"} 0',
      'webhook_oldest_seconds 0',
    ])
    await emitReady('t_1')
    await later(20)
    await emitReady('t_2')
    await later(40)
    t.same(await linesOf('webhook_'), [
      'webhook_deliveries{state="pending"} 2',
      'webhook_deliveries{state="dead"} 0',
      'webhook_oldest_seconds 40',
    ])
    response.status = 410
    await later(4_000)
    await later(60)
    t.same(
      await linesOf('webhook_'),
      ['webhook_deliveries{state="pending"} 0', 'webhook_deliveries{state="dead"} 0', 'webhook_oldest_seconds 0'],
      'a disabled endpoint has no pending deliveries',
    )
    await api.call('PATCH', `/v1/webhooks/${(body as { id: string }).id}`, { body: { enabled: true } })
    await later(60)
    const [pending, dead] = await linesOf('webhook_deliveries')
    t.same([pending, dead], ['webhook_deliveries{state="pending"} 0', 'webhook_deliveries{state="dead"} 2'])
  })

  t.test("metrics count gateways' lease calls by outcome, and leases by state", async (t) => {
    const { tenant_id: id } = await api.create()
    const boot = randomUUID()
    const call = (sequence: number, request: number, keep = 0, slots = 0) =>
      api.call('POST', internalPaths.leases, {
        key: null,
        headers: { 'x-tenantry-internal': internalToken },
        body: {
          source: 'gateway-1',
          boot,
          sequence,
          unfinished: [],
          stopping: false,
          reports:
            request === 0 ? [] : [{ tenant_id: id, used: 0, used_before: 0, keep, ask: request, waiting: request }],
          slots: [{ tenant_id: id, open: 0, keep: 0, ask: slots, waiting: slots }],
        },
      })
    t.equal((await call(1, 10)).status, 200)
    await call(2, 20_000, 0, 3)
    await call(3, 5, 10_000)
    await call(3, 5)
    await api.sql('alter table lease_holders rename to lease_holders_away')
    t.equal((await call(4, 0)).status, 500)
    await api.sql('alter table lease_holders_away rename to lease_holders')
    const text = (await api.call('GET', '/metrics')).text
    t.same(lines(text, 'tenantry_lease'), [
      'lease_calls_total{outcome="accepted"} 3',
      'lease_calls_total{outcome="refused"} 1',
      'lease_calls_total{outcome="failed"} 1',
      'leases_total{kind="requests",state="granted"} 2',
      'leases_total{kind="connections",state="granted"} 1',
      'leases_total{kind="requests",state="exhausted"} 1',
    ])
  })
})
