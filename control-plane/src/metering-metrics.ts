// Metrics of metering, quotas, invoices and webhooks: backlogs, their age, and failures.
import { Counter, Gauge, type Registry } from 'prom-client'
import type { ClosingDeps } from './billing/index.ts'
import { monthText } from './platform/months.ts'
import type { DispatcherDeps } from './webhooks/index.ts'
import type { LeaseMeasure } from './quotas/index.ts'
import type { CloseLedgerDeps, HomeReaderDeps } from './usage/index.ts'

/** State of the leader's loops; undefined once another control plane may lead. */
export interface MeteringMeasures {
  ledger: CloseLedgerDeps['measure']
  homes: HomeReaderDeps['measure']
  invoices: ClosingDeps['measure']
  webhooks: DispatcherDeps['measure']
  leases: LeaseMeasure
}

interface MeteringMetrics {
  measures: MeteringMeasures
  /** Updates the ages before the metrics are read. */
  age(): void
}

/** The age in seconds of an instant that is reported from time to time. */
class Age {
  readonly #gauge: Gauge
  #since: Date | undefined

  constructor(registry: Registry, name: string, help: string) {
    this.#gauge = new Gauge({ name, help, registers: [registry] })
    this.#gauge.remove()
  }

  /** Reports the instant. @param since `none` if nothing waits; undefined if this process does not know it */
  report(since: Date | 'none' | undefined): void {
    this.#since = since === 'none' ? undefined : since
    if (since === undefined) this.#gauge.remove()
    else this.#gauge.set(0)
  }

  update(now: Date): void {
    if (this.#since !== undefined) this.#gauge.set(Math.max(0, (now.getTime() - this.#since.getTime()) / 1000))
  }
}

export function createMeteringMetrics(registry: Registry, now: () => Date): MeteringMetrics {
  const registers = [registry]
  const gauge = (name: string, help: string, labelNames: string[]) => new Gauge({ name, help, labelNames, registers })
  const counter = (name: string, help: string, labelNames: string[]) =>
    new Counter({ name, help, labelNames, registers })
  const openHours = new Age(
    registry,
    'tenantry_usage_open_seconds',
    'Age of the first hour of usage that is not closed',
  )
  const openMonth = new Age(
    registry,
    'tenantry_usage_open_month_seconds',
    'Time since the end of the first month that is not closed for all tenants; 0 if there is none',
  )
  const missing = gauge(
    'tenantry_usage_missing_sources',
    'Sources of usage whose missing reports delay the closing of hours',
    ['kind'],
  )
  const readings = counter('tenantry_home_readings_total', 'Readings of homes for the ledger, by outcome', ['outcome'])
  const invoices = gauge('tenantry_invoices_missing', 'Tenants without an invoice for a past month, by reason', [
    'month',
    'reason',
  ])
  const deliveries = gauge('tenantry_webhook_deliveries', 'Messages of webhooks that are pending or were abandoned', [
    'state',
  ])
  const oldestDelivery = new Age(
    registry,
    'tenantry_webhook_oldest_seconds',
    'Age of the oldest pending message of a webhook; 0 if there is none',
  )
  const leaseCalls = counter(
    'tenantry_lease_calls_total',
    'Calls of gateways for leases of monthly requests and slots for connections, by outcome',
    ['outcome'],
  )
  const leases = counter(
    'tenantry_leases_total',
    'Requested leases of monthly requests or slots for connections, by outcome',
    ['kind', 'state'],
  )
  return {
    measures: {
      ledger(state) {
        openHours.report(state?.until)
        openMonth.report(state === undefined ? undefined : (state.openMonthEnd ?? 'none'))
        if (state === undefined) missing.reset()
        else for (const kind of ['gateway', 'home'] as const) missing.set({ kind }, state.missing[kind])
      },
      homes: (outcome) => readings.inc({ outcome }),
      invoices(months) {
        invoices.reset()
        for (const { month, notClosed, failed, outdated } of months ?? []) {
          invoices.set({ month: monthText(month), reason: 'not_closed' }, notClosed)
          invoices.set({ month: monthText(month), reason: 'failed' }, failed)
          invoices.set({ month: monthText(month), reason: 'outdated' }, outdated)
        }
      },
      webhooks(backlog) {
        oldestDelivery.report(backlog === undefined ? undefined : (backlog.oldest ?? 'none'))
        deliveries.reset()
        if (backlog !== undefined)
          for (const state of ['pending', 'dead'] as const) deliveries.set({ state }, backlog[state])
      },
      leases: {
        called: (outcome) => leaseCalls.inc({ outcome }),
        requested: (kind, state) => leases.inc({ kind, state }),
      },
    },
    age() {
      for (const one of [openHours, openMonth, oldestDelivery]) one.update(now())
    },
  }
}
