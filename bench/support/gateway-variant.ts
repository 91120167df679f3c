// Runs the gateway as its own process for benchmarks, with or without metering: VARIANT PORT CONTROL_URL DATA TOKEN.
import { randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { startGateway, startGatewayWith, type GatewayOptions } from '#gateway/gateway.ts'
import { createRequestTotals } from '#gateway/monitor/request-totals.ts'
import { CounterStore } from '#gateway/meter/counter-store.ts'
import { Meter, type TenantMeter } from '#gateway/meter/meter.ts'

const doNothing = () => undefined

const uncounted: TenantMeter = {
  request: doNothing,
  rejected: doNothing,
  quotaRejected: doNothing,
  egress: doNothing,
  opened: doNothing,
  closed: doNothing,
  began: doNothing,
  ended: doNothing,
  inProgress: 0,
  whenWritten: (next) => next(),
}

class NoMeter extends Meter {
  override tenant(): TenantMeter {
    return uncounted
  }
}

const [variant = '', port = '0', controlUrl = '', data = '', internalToken = ''] = process.argv.slice(2)
await mkdir(data, { recursive: true })
const options: GatewayOptions = {
  host: '127.0.0.1',
  port: Number(port),
  internalHost: '127.0.0.1',
  internalPort: 0,
  controlUrl,
  internalToken,
  data,
  domain: 'localhost',
  source: `gateway-${variant}`,
  now: Date.now,
  elapsed: () => performance.now(),
  newId: randomUUID,
  fetch: globalThis.fetch,
  collect: doNothing,
  log: { info: doNothing, warn: (_, message) => console.error(message), debug: doNothing },
}
const meter = new NoMeter({ store: new CounterStore(Date.now, 0), now: Date.now, elapsed: options.elapsed })
const gateway =
  variant === 'counted'
    ? await startGateway(options)
    : await startGatewayWith(options, {
        meter,
        totals: createRequestTotals(),
        boot: randomUUID(),
        controlNow: Date.now,
        unfinished: () => [],
        run: doNothing,
        clockKnown: async () => undefined,
        requestHour: async () => undefined,
        stop: async () => undefined,
      })
console.log(JSON.stringify({ port: gateway.port }))
process.on('SIGTERM', () => void gateway.stop(1_000).then(() => process.exit(0)))
