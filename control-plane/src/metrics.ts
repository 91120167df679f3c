// Metrics of the control plane, in Prometheus' text format.
import { collectDefaultMetrics, Counter, Histogram, Registry } from 'prom-client'

export interface Metrics {
  contentType: string
  text(): Promise<string>
  reconciled: (outcome: 'done' | 'failed', seconds: number) => void
}

export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const runs = new Counter({
    name: 'tenantry_reconciliations_total', help: 'Reconciliations of tenants, by outcome', labelNames: ['outcome'], registers: [registry],
  })
  const seconds = new Histogram({
    name: 'tenantry_reconciliation_seconds', help: 'Time of a reconciliation', buckets: [0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30], registers: [registry],
  })
  return {
    contentType: registry.contentType,
    text: () => registry.metrics(),
    reconciled(outcome, took) {
      runs.inc({ outcome })
      seconds.observe(took)
    },
  }
}
