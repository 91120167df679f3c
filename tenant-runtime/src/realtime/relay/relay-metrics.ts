// The metrics of the relay.
import { Counter, Gauge, type Metric } from 'prom-client'
import { dropReasons, type Relay } from './relay.ts'

/** Returns the metrics, which are 0 in a runtime without others. */
export function relayMetrics(relay: Relay | undefined): Metric[] {
  const links = (name: string, help: string, read: (links: Relay['links']) => number) =>
    new Gauge({
      name,
      help,
      registers: [],
      collect() {
        this.set(relay === undefined ? 0 : read(relay.links))
      },
    })
  return [
    links(
      'tenantry_runtime_realtime_siblings',
      'Other runtimes of the same tenants that are known',
      ({ known }) => known,
    ),
    links('tenantry_runtime_realtime_links', 'Other runtimes whose realtime messages arrive', ({ open }) => open),
    new Counter({
      name: 'tenantry_runtime_realtime_dropped_total',
      help: 'Broadcasts that did not reach the clients of another runtime',
      labelNames: ['reason'],
      registers: [],
      collect() {
        this.reset()
        for (const reason of dropReasons) this.inc({ reason }, relay?.dropped.get(reason) ?? 0)
      },
    }),
  ]
}
