// Metrics of the gateway, in Prometheus' text format.
import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client'
import type { Bound } from './bounds.ts'
import type { RequestTotals } from './request-totals.ts'

export interface Metrics {
  contentType: string
  text(): Promise<string>
}

/** The values that are read each time that the metrics are. */
interface MetricSources {
  /** Returns the bounds by name. */
  bounds: () => Record<string, Bound>
  /** The requests of all tenants together. */
  totals: Pick<RequestTotals, 'register'>
  /** Returns the number of connections that were closed to make room for others. */
  closed: () => number
  /** Returns the end of the validity of the SQL port's certificate in milliseconds since 1970; undefined without one. */
  certificateExpiresAt: () => number | undefined
}

export function createMetrics({ bounds, totals, closed, certificateExpiresAt }: MetricSources): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  totals.register(registry)
  const options = { labelNames: ['bound'], registers: [registry] }
  const used = new Gauge({
    ...options,
    name: 'tenantry_gateway_bound_used',
    help: 'Amount in use of a bound; of a share, that of the tenant or client address that uses most',
  })
  const limit = new Gauge({ ...options, name: 'tenantry_gateway_bound_limit', help: 'Maximum of a bound' })
  const rejections = new Counter({
    ...options,
    name: 'tenantry_gateway_bound_rejections_total',
    help: 'How often something was rejected, closed or delayed because of a bound',
  })
  const closedForOthers = new Counter({
    name: 'tenantry_gateway_connections_closed_total',
    help: 'Connections that were closed to make room for others',
    registers: [registry],
  })
  const certificateEnd = new Gauge({
    name: 'tenantry_gateway_sql_certificate_end_seconds',
    help: "End of the validity of the SQL port's certificate, in seconds since 1970; 0 without a certificate",
    registers: [registry],
  })
  return {
    contentType: registry.contentType,
    text() {
      rejections.reset()
      closedForOthers.reset()
      closedForOthers.inc(closed())
      certificateEnd.set((certificateExpiresAt() ?? 0) / 1_000)
      for (const [bound, now] of Object.entries(bounds())) {
        if (now.used !== undefined) used.set({ bound }, now.used)
        limit.set({ bound }, now.limit)
        rejections.inc({ bound }, now.rejections)
      }
      return registry.metrics()
    },
  }
}
