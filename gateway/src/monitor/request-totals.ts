// Counts the requests of all tenants together, for the metrics. Billing has its own counters for each tenant.
import { latencyBounds } from '@tenantry/contract'
import { Counter, Histogram, type Registry } from 'prom-client'

const statusClasses = ['2xx', '3xx', '4xx', '5xx'] as const

/** The class of an HTTP status. */
export type StatusClass = (typeof statusClasses)[number]

/** The requests of all tenants together. Their numbers are never attributed to a tenant. */
export type RequestTotals = ReturnType<typeof createRequestTotals>

export function createRequestTotals() {
  const requests = new Counter({
    name: 'tenantry_gateway_requests_total',
    help: 'Requests of tenants: served; rejected before anything of the tenant was reached; refused by a limit',
    labelNames: ['outcome', 'status'],
    registers: [],
  })
  const seconds = new Histogram({
    name: 'tenantry_gateway_request_seconds',
    help: 'Time from the head of a served request to the head of its response',
    buckets: latencyBounds.map((bound) => bound / 1_000),
    registers: [],
  })
  const egress = new Counter({
    name: 'tenantry_gateway_egress_bytes_total',
    help: 'Bytes that are sent to clients and count as egress of tenants',
    registers: [],
  })
  // The series exist from the start, so that rates begin at zero.
  const byStatus = (outcome: string) =>
    new Map(statusClasses.map((status) => [status, requests.labels({ outcome, status })]))
  const [served, rejected] = [byStatus('served'), byStatus('rejected')]
  const refused = requests.labels({ outcome: 'refused', status: '' })
  for (const series of [...served.values(), ...rejected.values(), refused]) series.inc(0)
  return {
    /** Counts a request that a runtime has served. `milliseconds` is the time until the head of its response. */
    served(status: StatusClass, milliseconds: number): void {
      served.get(status)?.inc()
      seconds.observe(milliseconds / 1_000)
    },
    /** Counts a request that was rejected before it reached anything of the tenant. */
    rejected(status: StatusClass): void {
      rejected.get(status)?.inc()
    },
    /** Counts a request that a quota, a rate or a spending limit rejected. */
    refused(): void {
      refused.inc()
    },
    /** Counts bytes that are sent to a client. */
    sent(bytes: number): void {
      egress.inc(bytes)
    },
    /** Adds the metrics to a registry. */
    register(registry: Registry): void {
      registry.registerMetric(requests)
      registry.registerMetric(seconds)
      registry.registerMetric(egress)
    },
  }
}
