// The ledger validates pushes, stores each counter's greatest value, and records the time until which each source is complete.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import type { HomeAmounts } from '#control-plane/usage/home-reading.ts'
import { newTenantId, pushOf, requests, startLedger } from './support/ledger.ts'

const { ledger, sql, clock } = await startLedger(t)
const hour = '2026-05-10T11:00:00.000Z'
const boot = randomUUID()

const valuesOf = (tenant: string) =>
  sql('select meter, value::text, booked::int, dirty from usage_counters where tenant_id = $1 order by meter', [tenant])
const source = async (name: string) => (await sql('select * from usage_sources where source = $1', [name]))[0]
const homeAmounts: HomeAmounts = {
  egressBytes: 0n,
  documentByteSeconds: 0n,
  fileByteSeconds: 0n,
  functionInvocations: 0n,
  functionMilliseconds: 0n,
  functionCpuMicroseconds: 0n,
  functionMemoryKibMilliseconds: 0n,
  realtimeMessages: 0n,
}

t.test(
  'the ledger knows a source from its first push on, complete at most until the time that it reported',
  async (t) => {
    await ledger.record(pushOf('first', boot, []))
    t.match(await source('first'), {
      tenant_id: null,
      complete_until: new Date('2026-05-10T12:00:00Z'),
      last_seen_at: clock.now,
      retired_at: null,
    })
    await ledger.record(
      pushOf('earlier', boot, [
        requests(newTenantId(), hour, 1),
        requests(newTenantId(), '2026-05-01T00:00:00.000Z', 1),
      ]),
    )
    t.match(
      await source('earlier'),
      { complete_until: new Date('2026-05-01T00:00:00Z') },
      'an hour in which it counts is not complete',
    )
    await ledger.record(pushOf('earlier', boot, [], hour))
    await ledger.record(pushOf('earlier', boot, [], '2026-05-02T00:00:00.000Z'))
    t.match(await source('earlier'), { complete_until: new Date(hour) }, 'the reported time never moves back')
  },
)

t.test('hours do not wait for a source that reported its stop, until it pushes again', async (t) => {
  const tenant = newTenantId()
  await ledger.record({ ...pushOf('brief', boot, [requests(tenant, hour, 2)], hour), stopped: true })
  t.match(await source('brief'), { complete_until: new Date(hour), retired_at: clock.now })
  t.equal((await valuesOf(tenant)).length, 1, 'its counts stay')
  await ledger.record(pushOf('brief', randomUUID(), []))
  t.match(await source('brief'), { complete_until: new Date(hour), retired_at: null })
})

t.test('a push with an invalid field is rejected with that field’s name, and none of it is recorded', async (t) => {
  const tenant = newTenantId()
  const good = requests(tenant, hour, 5)
  for (const [push, field] of [
    [pushOf('', boot, [good]), 'source'],
    [pushOf(`home:${tenant}`, boot, [good]), 'source'],
    [pushOf('g', 'no uuid', [good]), 'boot'],
    [pushOf('g', boot, [good], '2026-05-10T11:30:00.000Z'), 'complete_until'],
    [pushOf('g', boot, [good], 'soon'), 'complete_until'],
    [pushOf('g', boot, [good, { ...good, hour: '2026-05-10T11:30:00.000Z' }]), 'counters/1/hour'],
    [pushOf('g', boot, [good, { ...good, hour: '2026-13-10T11:00:00.000Z' }]), 'counters/1/hour'],
    [pushOf('g', boot, [{ ...good, tenant_id: 'unknown' }]), 'counters/0/tenant_id'],
    [pushOf('g', boot, [{ ...good, group: 'a\0b' }]), 'counters/0/group'],
    [pushOf('g', boot, [{ ...good, value: 2 ** 60 }]), 'counters/0/value'],
  ] as const) {
    await t.rejects(ledger.record(push), { code: 'INVALID_FIELD', message: new RegExp(`"${field}"`) }, field)
  }
  t.same(await valuesOf(tenant), [])
  t.equal(await source('g'), undefined)
})

t.test('a repeated push leaves a closed hour closed; a greater value opens it', async (t) => {
  const tenant = newTenantId()
  await ledger.record(pushOf('repeated', boot, [requests(tenant, hour, 5)]))
  await sql('update usage_counters set booked = value, dirty = false where tenant_id = $1', [tenant])
  await ledger.record(pushOf('repeated', boot, [requests(tenant, hour, 5)]))
  await ledger.record(pushOf('repeated', boot, [requests(tenant, hour, 3)]))
  t.same(await valuesOf(tenant), [{ meter: 'requests', value: '5', booked: 5, dirty: false }])
  await ledger.record(pushOf('repeated', boot, [requests(tenant, hour, 6)]))
  t.same(await valuesOf(tenant), [{ meter: 'requests', value: '6', booked: 5, dirty: true }])
})

t.test(
  'after counters are removed, a push for hours that its source had completed is a repeat, and any other is new',
  async (t) => {
    const tenant = newTenantId()
    await ledger.record(pushOf('complete', boot, [], '2026-05-10T12:00:00.000Z'))
    await ledger.record(pushOf('behind', boot, [requests(newTenantId(), '2026-05-10T09:00:00.000Z', 1)]))
    await sql("update usage_closing set kept_from = '2026-05-10T11:00:00Z'")
    await ledger.record(
      pushOf('complete', boot, [requests(tenant, '2026-05-10T10:00:00.000Z', 5), requests(tenant, hour, 7)]),
    )
    t.same(await valuesOf(tenant), [{ meter: 'requests', value: '7', booked: 0, dirty: true }])
    await ledger.record(pushOf('behind', boot, [requests(tenant, '2026-05-10T10:00:00.000Z', 9)]))
    t.same((await valuesOf(tenant)).map(({ value }) => value).sort(), ['7', '9'])
    await sql("update usage_closing set kept_from = 'epoch'")
  },
)

t.test("the ledger stores a home's reading beyond the safe integers, under the tenant's own source", async (t) => {
  const tenant = newTenantId()
  const reading = {
    tenantId: tenant,
    boot,
    completeUntil: new Date(hour),
    hours: [
      {
        hour: new Date(hour),
        amounts: { ...homeAmounts, fileByteSeconds: 9_007_199_254_740_993n, functionInvocations: 2n },
      },
    ],
  }
  await ledger.recordHome(reading)
  await ledger.recordHome(reading)
  t.same(await valuesOf(tenant), [
    { meter: 'file_byte_seconds', value: '9007199254740993', booked: 0, dirty: true },
    { meter: 'function_invocations', value: '2', booked: 0, dirty: true },
  ])
  t.match(await source(`home:${tenant}`), { tenant_id: tenant, complete_until: new Date(hour) })
})
