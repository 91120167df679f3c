// The runtime's metrics: what each bound allows, how much of it is used, and how often it rejected something.
import { internalPaths } from '@tenantry/contract'
import type { FastifyInstance } from 'fastify'
import { collectDefaultMetrics, Counter, Gauge, Registry, type Metric } from 'prom-client'
import type { Bounds } from './bounds.ts'

/** Adds the route with the metrics. @param further metrics of other parts, which no registry has */
export function addMetrics(app: FastifyInstance, bounds: Bounds, further: readonly Metric[]): void {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const budgets = { bodies: bounds.bodies, results: bounds.results.budget }
  const gauge = (name: string, help: string, read: (budget: (typeof budgets)['bodies']) => number) =>
    new Gauge({
      name,
      help,
      labelNames: ['budget'],
      registers: [registry],
      collect() {
        for (const [budget, value] of Object.entries(budgets)) this.set({ budget }, read(value))
      },
    })
  gauge('tenantry_runtime_budget_used_bytes', 'Memory that is reserved of a budget', ({ used }) => used)
  gauge('tenantry_runtime_budget_limit_bytes', 'Memory of a budget', ({ maxBytes }) => maxBytes)
  registry.registerMetric(
    new Counter({
      name: 'tenantry_runtime_budget_rejections_total',
      help: 'Requests that were rejected because a share of a budget had no room',
      labelNames: ['budget', 'share'],
      registers: [],
      collect() {
        this.reset()
        for (const [budget, { rejections }] of Object.entries(budgets))
          for (const [share, count] of rejections) this.inc({ budget, share }, count)
      },
    }),
  )
  registry.registerMetric(
    new Gauge({
      name: 'tenantry_runtime_resident_bytes',
      help: 'Memory of the process',
      registers: [],
      collect() {
        this.set(process.memoryUsage.rss())
      },
    }),
  )
  for (const metric of further) registry.registerMetric(metric)
  app.get(internalPaths.metrics, { config: { access: 'metrics' } }, async (_request, reply) =>
    reply.type(registry.contentType).send(await registry.metrics()),
  )
}
