// Billing reads exactly what the ledger closed, and rejects a month whose stored rows were changed.
import { randomUUID } from 'node:crypto'
import t from 'tap'
import { createClosedUsage } from '#control-plane/usage/store-closed.ts'
import { chainStart } from '#control-plane/usage/hash-chain.ts'
import { noAmounts } from '#control-plane/usage/hour-bucket.ts'
import { newTenantId, pushOf, requests, startLedger } from './support/ledger.ts'

const all = await startLedger(t)
const { ledger, close, sql, database } = all
const closed = createClosedUsage(database)
const boot = randomUUID()
const [april, may] = [new Date('2026-04-01T00:00:00Z'), new Date('2026-05-01T00:00:00Z')]

t.test(
  'billing reads the hours and corrections of a closed month, lists its tenants, and rejects changed rows',
  async (t) => {
    const tenant = await all.tenant('2026-04-01T00:00:00Z')
    const idle = await all.tenant('2026-04-01T00:00:00Z')
    await ledger.record(
      pushOf(
        'g',
        boot,
        [requests(tenant, '2026-04-30T20:00:00.000Z', 3), requests(tenant, '2026-04-30T22:00:00.000Z', 4)],
        '2026-04-30T23:00:00.000Z',
      ),
    )
    await close('2026-04-30T23:30:00Z')
    t.match(await closed.month(tenant, april), {
      closedAt: undefined,
      hours: [{ amounts: { requests: 3n } }, { amounts: { requests: 4n } }],
    })
    await ledger.record(
      pushOf('g', boot, [requests(tenant, '2026-04-30T21:00:00.000Z', 1)], '2026-05-01T00:00:00.000Z'),
    )
    await close('2026-05-01T00:30:00Z')
    await ledger.record(
      pushOf('g', boot, [requests(tenant, '2026-04-30T20:00:00.000Z', 5)], '2026-05-01T01:00:00.000Z'),
    )
    await close('2026-05-01T01:30:00Z')

    const month = await closed.month(tenant, april)
    t.match(month, {
      tenantId: tenant,
      previous: chainStart,
      closedAt: new Date('2026-05-01T00:30:00Z'),
      hours: [
        { tenantId: tenant, hour: new Date('2026-04-30T20:00:00Z'), amounts: { ...noAmounts(), requests: 3n } },
        { hour: new Date('2026-04-30T22:00:00Z') },
      ],
      corrections: [
        {
          number: 1,
          hour: new Date('2026-04-30T21:00:00Z'),
          amounts: { ...noAmounts(), requests: 1n },
          billedMonth: april,
        },
      ],
    })
    const next = await closed.month(tenant, may)
    t.match(next, { previous: month.hash, hash: month.hash, hours: [], closedAt: undefined })
    t.match(next.corrections, [
      {
        number: 2,
        hour: new Date('2026-04-30T20:00:00Z'),
        amounts: { requests: 2n },
        previous: month.corrections[0]?.hash,
      },
    ])
    t.match(await closed.month(idle, april), {
      hours: [],
      corrections: [],
      previous: chainStart,
      hash: chainStart,
      closedAt: new Date('2026-05-01T00:30:00Z'),
    })
    t.match(await closed.month(newTenantId(), april), { hours: [], corrections: [], closedAt: undefined })

    const ids = [tenant, idle].sort()
    t.same(await closed.closedTenants(april, { after: undefined, limit: 10 }), ids)
    t.same(await closed.closedTenants(april, { after: ids[0], limit: 10 }), ids.slice(1))
    t.same(await closed.closedTenants(april, { after: undefined, limit: 1 }), ids.slice(0, 1))
    t.same(await closed.closedTenants(may, { after: undefined, limit: 10 }), [])

    for (const change of [
      // The last byte of the packed hours is the last hour's number of requests.
      'update usage_months set hours = set_byte(hours, length(hours) - 1, 3) where tenant_id = $1 and length(hours) > 0',
      "update usage_months set previous = repeat('1', 64) where tenant_id = $1 and length(hours) > 0",
    ]) {
      await sql('alter table usage_months disable trigger usage_months_closed')
      await sql('create table saved_months as select * from usage_months')
      await sql(change, [tenant])
      await t.rejects(closed.month(tenant, april), /do not match their chain/, change)
      await sql('delete from usage_months')
      await sql('insert into usage_months select * from saved_months')
      await sql('drop table saved_months')
    }
    await sql('alter table usage_corrections disable trigger usage_corrections_kept')
    await sql("update usage_corrections set amounts = '0,0,0,0,0,0,0,0,0,0' where tenant_id = $1 and number = 2", [
      tenant,
    ])
    await t.rejects(closed.month(tenant, may), /Correction 2 of 2026-05/)
    t.equal((await closed.month(tenant, april)).hash, month.hash)
  },
)
