// The control plane with prices, and months that end when a test says so: usage is pushed as gateways do, and closed as the leader does.
import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import { createClosing } from '#control-plane/billing/jobs.ts'
import { systemClock } from '#control-plane/platform/clock.ts'
import { openDatabase } from '#control-plane/platform/database.ts'
import { createLedgerClosing } from '#control-plane/usage/store-closing.ts'
import { closeAll } from '#control-plane/usage/jobs-close-ledger.ts'
import { nextMonth, startOfMonth } from '#control-plane/platform/months.ts'
import { internalToken, startApi, type TestApi } from '#test/support/control-plane/api.ts'
import { billingConfig } from './prices.ts'

export interface BilledApi extends TestApi {
  /** Start of the month that the test began in, and of the next. */
  month: Date
  next: Date
  /** Counts requests in an hour, more than there were. @param source another one's counts are added */
  count(tenantId: string, hour: Date, requests: number, source?: string): Promise<void>
  /** The clock goes to that time, every source is complete until then, and the ledger closes what can be closed. */
  closeUntil(at: Date): Promise<void>
  /** The leader's look at the months, once. */
  makeInvoices(epoch?: bigint): Promise<void>
  /** Of the leader that there is now. */
  epoch(): Promise<bigint>
  warnings: string[]
}

export async function startBilledApi(t: Test): Promise<BilledApi> {
  const api = await startApi(t, { prices: billingConfig })
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
    if (response.status !== 200) throw new Error(`the push was answered ${response.status}: ${response.text}`)
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
      // The controller may be taking the lead at this moment.
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
