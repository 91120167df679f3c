// The control plane with prices. A test pushes usage as gateways do, and ends months as the leader does.
import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import { createClosing } from '#control-plane/billing/jobs.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { createLedgerClosing } from '#control-plane/usage/store-closing.ts'
import { closeAll } from '#control-plane/usage/jobs-close-ledger.ts'
import { nextMonth, startOfMonth } from '#control-plane/platform/months.ts'
import { internalToken, startApi, type TestApi, type TestApiOptions } from '#test/support/control-plane/api.ts'
import { billingConfig } from './prices.ts'

export interface BilledApi extends TestApi {
  /** Start of the month in which the test began; `next` is the start of the next month. */
  month: Date
  next: Date
  /** Pushes a new count of requests in an hour, greater than the count before. @param source counts of different sources add up */
  count(tenantId: string, hour: Date, requests: number, source?: string): Promise<void>
  /** Moves the clock to a time, completes all sources up to its hour, and closes all hours that can be closed. */
  closeUntil(at: Date): Promise<void>
  /** Runs the leader's check for missing invoices once. */
  makeInvoices(epoch?: bigint): Promise<void>
  /** Returns the epoch of the current leader. */
  epoch(): Promise<bigint>
  warnings: string[]
}

export async function startBilledApi(t: Test, options: TestApiOptions = {}): Promise<BilledApi> {
  const api = await startApi(t, { ...options, prices: billingConfig })
  const database = openDatabase(api.controlUrl)
  t.teardown(() => database.$disconnect())
  const now = () => new Date(Date.now() + api.clock.ahead)
  const closing = createLedgerClosing(database, now)
  const boot = randomUUID()
  const month = startOfMonth(new Date())
  const warnings: string[] = []
  const sources = new Set(['gateway-test'])
  const push = async (counters: object[], completeUntil?: Date, source = 'gateway-test') => {
    sources.add(source)
    const body = {
      source,
      boot,
      counters,
      ...(completeUntil === undefined ? {} : { complete_until: completeUntil.toISOString() }),
    }
    const response = await api.call('POST', '/internal/v1/usage', {
      key: null,
      headers: { 'x-tenantry-internal': internalToken },
      body,
    })
    if (response.status !== 200) throw new Error(`the push failed with ${response.status}: ${response.text}`)
  }
  const epoch = async () => BigInt(String((await api.sql('select epoch from installation'))[0]?.['epoch']))
  return Object.assign(api, {
    month,
    next: nextMonth(month),
    warnings,
    epoch,
    async count(tenantId: string, hour: Date, requests: number, source?: string) {
      await push(
        [
          {
            tenant_id: tenantId,
            hour: hour.toISOString(),
            meter: 'requests',
            group: 'rest',
            method: 'GET',
            status_class: '2xx',
            bucket: '',
            value: requests,
          },
        ],
        undefined,
        source,
      )
    },
    async closeUntil(at: Date) {
      api.clock.ahead = at.getTime() - Date.now()
      for (const source of sources) await push([], new Date(Math.floor(at.getTime() / 3_600_000) * 3_600_000), source)
      // The controller may take the lead at this moment, so the epoch is read here.
      await closeAll(closing, now(), await epoch())
    },
    async makeInvoices(as?: bigint) {
      const { billing, ledger, usage, history } = api.billing
      const log = { info: () => undefined, warn: (_details: object, message: string) => warnings.push(message) }
      const { poll } = createClosing(
        {
          billing,
          config: billingConfig,
          ledger,
          usage,
          history,
          clock: { ...systemClock, now },
          measure: () => undefined,
          log,
        },
        as ?? (await epoch()),
      )
      await poll(new AbortController().signal)
    },
  })
}
