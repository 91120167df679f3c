// The ledger stores the greatest value of each counter that gateways push, so repeated, reordered and restarted pushes count once.
import { randomUUID } from 'node:crypto'
import {
  internalPaths,
  internalTokenHeader,
  type Counter,
  type UsageResponse,
  type UsagePush,
} from '@tenantry/contract'
import fc from 'fast-check'
import t from 'tap'
import { effort, seed } from '#test/support/effort.ts'
import { internalToken, startApi } from '#test/support/control-plane/api.ts'

const api = await startApi(t)
const url = await api.app.listen({ host: '127.0.0.1', port: 0 })

async function push(body: UsagePush): Promise<UsageResponse> {
  const response = await fetch(new URL(internalPaths.usage, url), {
    method: 'POST',
    headers: { 'content-type': 'application/json', [internalTokenHeader]: internalToken },
    body: JSON.stringify(body),
  })
  t.equal(response.status, 200)
  return (await response.json()) as UsageResponse
}

const stored = (source: string) =>
  api.sql(
    'select meter, bucket, sum(value)::int as total from usage_counters where source = $1 group by meter, bucket order by meter, bucket',
    [source],
  )

t.test('the same pushes in any order, repeated or not, leave the same counters', async (t) => {
  const { tenant_id } = await api.create()
  const base = { tenant_id, hour: '2026-05-01T09:00:00.000Z', group: 'rest', method: '', status_class: '' }
  const cells: Omit<Counter, 'value'>[] = [
    { ...base, meter: 'requests', method: 'GET', status_class: '2xx', bucket: '' },
    { ...base, meter: 'latency', bucket: '10' },
    { ...base, meter: 'latency', bucket: 'inf' },
    { ...base, meter: 'connections_peak', group: '', bucket: '' },
  ]
  const boots = [randomUUID(), randomUUID()]
  // The nth push of a boot holds the nth value of each of its counters.
  const pushes = boots.flatMap((boot) =>
    [1, 2, 3].map((value) => ({ boot, counters: cells.map((cell) => ({ ...cell, value })) })),
  )
  await fc.assert(
    fc.asyncProperty(fc.shuffledSubarray([...pushes, ...pushes], { minLength: 2 * pushes.length }), async (order) => {
      const source = `gateway-${randomUUID()}`
      for (const one of order) await push({ source, ...one })
      t.same(await stored(source), [
        { meter: 'connections_peak', bucket: '', total: 6 },
        { meter: 'latency', bucket: '10', total: 6 },
        { meter: 'latency', bucket: 'inf', total: 6 },
        { meter: 'requests', bucket: '', total: 6 },
      ])
    }),
    { numRuns: effort({ small: 5, full: 200 }), seed },
  )
})

t.test("a response reports the control plane's clock", async (t) => {
  const before = Date.now()
  const { accepted, now } = await push({
    source: 'gateway-clock',
    boot: randomUUID(),
    counters: [],
    complete_until: '2026-05-01T09:00:00.000Z',
  })
  t.ok(accepted)
  t.ok(Date.parse(now) >= before && Date.parse(now) <= Date.now(), now)
})
