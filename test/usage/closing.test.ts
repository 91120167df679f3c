// An hour closes when all sources have passed it, a month when all its hours are closed. Nothing closed ever changes.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { parseAmounts } from '#control-plane/usage/amounts-text.ts'
import { unpackHours } from '#control-plane/usage/packed-hours.ts'
import { pushOf, requests, startLedger } from './support/ledger.ts'

const all = await startLedger(t)
const { ledger, close, sql, closing } = all
t.beforeEach(() => all.empty())

const boot = randomUUID()
const hour = (text: string) => `2026-05-${text}:00:00.000Z`

async function recordsOf(tenantId: string) {
  const { database } = all
  const months = await database.usageMonth.findMany({ where: { tenantId }, orderBy: { month: 'asc' } })
  const corrections = await database.usageCorrection.findMany({ where: { tenantId }, orderBy: { number: 'asc' } })
  return {
    hours: months.flatMap(({ hours, month }) =>
      unpackHours(hours, tenantId, month).map(({ hour: at, amounts }) => [at.toISOString(), Number(amounts.requests)]),
    ),
    corrections: corrections.map(({ hour: at, amounts, billedMonth }) => [
      at.toISOString(),
      Number(parseAmounts(amounts).requests),
      billedMonth.toISOString().slice(0, 7),
    ]),
    months: months.map(({ month, totals, closedAt }) => [
      month.toISOString().slice(0, 7),
      Number(parseAmounts(totals).requests),
      closedAt !== null,
    ]),
    stored: months,
  }
}

t.test(
  'an hour closes ten minutes after its end at the earliest, and when the slowest gateway has passed it',
  async (t) => {
    const tenant = await all.tenant()
    await ledger.record(
      pushOf('g1', boot, [requests(tenant, hour('10T09'), 3), requests(tenant, hour('10T10'), 4)], hour('10T11')),
    )
    await ledger.record(pushOf('g2', boot, [requests(tenant, hour('10T09'), 5)], hour('10T10')))
    await close('2026-05-10T10:09:00Z')
    t.same((await recordsOf(tenant)).hours, [])
    await close('2026-05-10T11:30:00Z')
    t.same((await recordsOf(tenant)).hours, [[hour('10T09'), 8]], 'the hour in which g2 may still count stays open')
    await ledger.record(pushOf('g2', boot, [], hour('10T11')))
    await close('2026-05-10T11:30:00Z')
    await close('2026-05-10T11:30:00Z')
    t.same((await recordsOf(tenant)).hours, [
      [hour('10T09'), 8],
      [hour('10T10'), 4],
    ])
  },
)

t.test('a lost gateway holds hours open until it is retired; its late counts become a correction, once', async (t) => {
  const tenant = await all.tenant()
  await ledger.record(pushOf('gone', boot, [requests(tenant, hour('10T09'), 3)], hour('10T09')))
  await ledger.record(pushOf('here', boot, [requests(tenant, hour('10T09'), 10)], hour('10T12')))
  await close('2026-05-10T12:30:00Z')
  t.same((await recordsOf(tenant)).hours, [])
  await sql("update usage_sources set retired_at = now() where source = 'gone'")
  await close('2026-05-10T12:30:00Z')
  t.same((await recordsOf(tenant)).hours, [[hour('10T09'), 13]])
  const { stored } = await recordsOf(tenant)
  for (let repeat = 0; repeat < 3; repeat++) {
    await ledger.record(pushOf('gone', boot, [requests(tenant, hour('10T09'), 8)], hour('10T12')))
    await close('2026-05-10T12:30:00Z')
  }
  const records = await recordsOf(tenant)
  t.same(records.corrections, [[hour('10T09'), 5, '2026-05']])
  t.same(records.months, [['2026-05', 18, false]])
  t.equal(records.stored[0]?.hash, stored[0]?.hash)
})

t.test("a tenant's hours wait for its own home only; the home of a deleted tenant holds no hours open", async (t) => {
  const [slow, other] = [await all.tenant(), await all.tenant()]
  const none = {
    egressBytes: 0n,
    documentByteSeconds: 0n,
    fileByteSeconds: 0n,
    functionInvocations: 0n,
    functionMilliseconds: 0n,
    functionCpuMicroseconds: 0n,
    functionMemoryKibMilliseconds: 0n,
    realtimeMessages: 0n,
  }
  await ledger.recordHome({
    tenantId: slow,
    boot,
    completeUntil: new Date(hour('10T09')),
    hours: [{ hour: new Date(hour('10T08')), amounts: { ...none, fileByteSeconds: 7200n } }],
  })
  await ledger.record(
    pushOf(
      'g',
      boot,
      [slow, other].flatMap((id) => [requests(id, hour('10T08'), 1), requests(id, hour('10T09'), 2)]),
      hour('10T12'),
    ),
  )
  await close('2026-05-10T12:30:00Z')
  t.same((await recordsOf(slow)).hours, [[hour('10T08'), 1]])
  t.same((await recordsOf(other)).hours, [
    [hour('10T08'), 1],
    [hour('10T09'), 2],
  ])
  await sql('delete from tenants where id = $1', [slow])
  await close('2026-05-10T12:30:00Z')
  t.same((await recordsOf(slow)).hours, [
    [hour('10T08'), 1],
    [hour('10T09'), 2],
  ])
})

t.test(
  'a month closes for each tenant that existed in it; late counts go to the next; the database rejects changes',
  async (t) => {
    const [busy, idle, young] = [
      await all.tenant('2026-04-20T00:00:00Z'),
      await all.tenant('2026-05-03T00:00:00Z'),
      await all.tenant('2026-06-01T00:00:00Z'),
    ]
    await ledger.record(pushOf('late', boot, [], hour('31T22')))
    await sql("update usage_sources set retired_at = now() where source = 'late'")
    await ledger.record(
      pushOf(
        'g',
        boot,
        [requests(busy, hour('31T23'), 6), requests(busy, '2026-06-01T00:00:00.000Z', 1)],
        '2026-06-01T00:00:00.000Z',
      ),
    )
    await close('2026-06-01T00:05:00Z')
    t.same((await recordsOf(busy)).months, [['2026-04', 0, true]])
    await close('2026-06-01T00:10:00Z')
    t.same((await recordsOf(busy)).months, [
      ['2026-04', 0, true],
      ['2026-05', 6, true],
    ])
    t.same((await recordsOf(idle)).months, [['2026-05', 0, true]])
    t.same((await recordsOf(young)).months, [])

    const { stored } = await recordsOf(busy)
    await ledger.record(
      pushOf('late', boot, [requests(busy, hour('31T23'), 4), requests(idle, hour('31T22'), 2)], hour('31T22')),
    )
    await sql("update usage_sources set retired_at = now() where source = 'late'")
    await ledger.record(pushOf('g', boot, [], '2026-06-01T01:00:00.000Z'))
    await close('2026-06-01T01:30:00Z')
    const after = await recordsOf(busy)
    t.same(after.stored.slice(0, 2), stored.slice(0, 2))
    t.same(after.corrections, [[hour('31T23'), 4, '2026-06']])
    t.same((await recordsOf(idle)).corrections, [[hour('31T22'), 2, '2026-06']])
    t.same(after.months[2], ['2026-06', 1, false])
    t.equal(after.stored[2]?.previous, stored[1]?.hash)

    for (const change of [
      "update usage_months set totals = '' where month = '2026-05-01'",
      "delete from usage_months where month = '2026-05-01'",
      'update usage_corrections set number = 5',
      'delete from usage_corrections',
    ]) {
      await t.rejects(sql(change), { code: '23001' }, change)
    }
  },
)

t.test('the month in which corrections of a deleted tenant are billed still closes', async (t) => {
  const tenant = await all.tenant('2026-05-03T00:00:00Z')
  await ledger.record(pushOf('late', boot, [], hour('31T22')))
  await sql("update usage_sources set retired_at = now() where source = 'late'")
  await ledger.record(pushOf('g', boot, [requests(tenant, hour('30T23'), 6)], '2026-06-01T00:00:00.000Z'))
  await close('2026-06-01T00:30:00Z')
  await sql('delete from tenants where id = $1', [tenant])
  await ledger.record(pushOf('late', boot, [requests(tenant, hour('31T23'), 4)]))
  await ledger.record(pushOf('g', boot, [], '2026-07-01T00:00:00.000Z'))
  await sql("update usage_sources set retired_at = now() where source = 'late'")
  await close('2026-08-01T00:30:00Z')
  const { months, corrections } = await recordsOf(tenant)
  t.same(corrections, [[hour('31T23'), 4, '2026-06']])
  t.same(
    months,
    [
      ['2026-05', 6, true],
      ['2026-06', 0, true],
    ],
    'no later month exists',
  )
})

t.test('the months in which a deleted, idle tenant had a plan close, because it may owe a fee', async (t) => {
  const tenant = await all.tenant('2026-04-20T00:00:00Z')
  await sql("update plan_periods set until = '2026-05-02T00:00:00Z' where tenant_id = $1", [tenant])
  await sql('delete from tenants where id = $1', [tenant])
  await close('2026-08-01T00:30:00Z')
  t.same((await recordsOf(tenant)).months, [
    ['2026-04', 0, true],
    ['2026-05', 0, true],
  ])
  t.equal(await closing.firstOpenMonth(), undefined)
})

t.test(
  'posted counters are removed a day after their hour closes, and pushing them again counts nothing',
  async (t) => {
    const tenant = await all.tenant()
    const repeatedPush = pushOf('g', boot, [requests(tenant, hour('10T09'), 3)], hour('10T10'))
    await ledger.record(repeatedPush)
    await close('2026-05-10T11:30:00Z')
    await ledger.record(pushOf('g', boot, [requests(tenant, hour('11T11'), 1)], hour('11T13')))
    await close('2026-05-11T13:30:00Z')
    t.same(await sql('select value::int, dirty from usage_counters order by hour'), [
      { value: 3, dirty: false },
      { value: 1, dirty: false },
    ])
    await ledger.record(pushOf('g', boot, [], hour('11T14')))
    await close('2026-05-11T14:30:00Z')
    t.same(await sql('select value::int, dirty from usage_counters order by hour'), [{ value: 1, dirty: false }])
    await ledger.record(repeatedPush)
    await close('2026-05-11T14:31:00Z')
    const records = await recordsOf(tenant)
    t.same(records.hours, [
      [hour('10T09'), 3],
      [hour('11T11'), 1],
    ])
    t.same(records.corrections, [])
  },
)

t.test('a control plane that no longer leads closes nothing', async (t) => {
  const tenant = await all.tenant()
  await ledger.record(pushOf('g', boot, [requests(tenant, hour('10T09'), 3)], hour('10T12')))
  await sql('update installation set epoch = 1')
  await t.rejects(close('2026-05-10T12:30:00Z'), /Another control plane leads/)
  t.same((await recordsOf(tenant)).hours, [])
  t.same(await sql('select dirty from usage_counters'), [{ dirty: true }])
})

t.test('pushes that arrive while hours close are posted exactly once', async (t) => {
  const tenants = await Promise.all(Array.from({ length: 6 }, () => all.tenant()))
  const until = new Date(hour('10T12'))
  await ledger.record(pushOf('slow', randomUUID(), [], hour('10T09')))
  await sql("update usage_sources set retired_at = now() where source = 'slow'")
  let value = 0
  let isOpen = true
  const push = async () => {
    while (isOpen) {
      value++
      await ledger.record(
        pushOf(
          'g',
          boot,
          tenants.flatMap((id) => [requests(id, hour('10T09'), value), requests(id, hour('10T10'), value)]),
        ),
      )
    }
  }
  const pushing = push()
  for (let round = 0; round < 12; round++)
    await closing
      .closeHours(until, { after: '', limit: 4 }, 0n)
      .then((after) => closing.closeHours(until, { after: after ?? '', limit: 10 }, 0n))
  isOpen = false
  await pushing
  await closing.closeHours(until, { after: '', limit: 100 }, 0n)
  for (const tenant of tenants) {
    const { hours, corrections } = await recordsOf(tenant)
    const total = [...hours, ...corrections].reduce((sum, [, number]) => sum + Number(number), 0)
    t.equal(total, 2 * value)
  }
})
