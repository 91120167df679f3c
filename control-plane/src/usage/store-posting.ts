// Posts new counts of tenants to their hours, months and corrections, in one transaction.
import { amountsText, parseAmounts } from './amounts-text.ts'
import {
  postCounts,
  monthsBetween,
  type Posted,
  type Count,
  type OpenMonth,
  type TenantPosting,
} from './post-counts.ts'
import { chainStart } from './hash-chain.ts'
import { packCells, unpackCells } from './packed-cells.ts'
import type { Transaction } from '../platform/database.ts'

/**
 * New counts, summed over the sources. They are read as JSON, because a row for each would cost several times as much.
 */
type NewCounts = {
  hour: number
  meter: string
  group: string
  method: string
  status_class: string
  bucket: string
  value: string
}[]

/**
 * Posts the new counts of tenants.
 * @param tenants each with the hour before which its counts are due
 */
export async function postTenants(
  transaction: Transaction,
  tenants: readonly { tenantId: string; until: Date }[],
  at: Date,
): Promise<void> {
  const counts = await takeCounts(transaction, tenants)
  if (counts.size === 0) return
  const postings = await readPostings(transaction, counts, at)
  const posted = [...counts].map(([tenantId, its]) =>
    postCounts(postings.get(tenantId) ?? newPosting(tenantId), its, at),
  )
  await writePostings(transaction, posted)
}

/**
 * Marks counts as posted, row by row, in the order in which pushes lock them. A simultaneous push is either included or
 * left for the next time.
 */
async function takeCounts(
  transaction: Transaction,
  tenants: readonly { tenantId: string; until: Date }[],
): Promise<Map<string, Count[]>> {
  const wanted = JSON.stringify(
    tenants.map(({ tenantId, until }) => ({ tenant_id: tenantId, until: until.toISOString() })),
  )
  const rows = await transaction.$queryRaw<{ tenant_id: string; counts: NewCounts }[]>`
    with due as materialized (
      select c.ctid as row from usage_counters c, jsonb_to_recordset(${wanted}::jsonb) as w(tenant_id text, until timestamptz)
      where c.tenant_id = w.tenant_id and c.dirty and c.hour < w.until
      order by c.tenant_id, c.hour, c.meter, c."group", c.method, c.status_class, c.bucket
      for update of c
    ), posted as (
      update usage_counters c set booked_last = c.value - c.booked, booked = c.value, dirty = false from due where c.ctid = due.row
      returning c.tenant_id, c.hour, c.meter, c."group", c.method, c.status_class, c.bucket, c.booked_last as value
    ), summed as (
      select tenant_id, extract(epoch from hour)::bigint as hour, meter, "group", method, status_class, bucket, sum(value)::text as value
      from posted group by tenant_id, hour, meter, "group", method, status_class, bucket having sum(value) > 0
    )
    select tenant_id, json_agg(json_build_object(
      'hour', hour, 'meter', meter, 'group', "group", 'method', method, 'status_class', status_class, 'bucket', bucket,
      'value', value)) as counts
    from summed group by tenant_id`
  return new Map(
    rows.map(({ tenant_id: tenantId, counts }) => [
      tenantId,
      counts.map(({ hour, value, status_class: statusClass, ...key }) => ({
        hour: new Date(hour * 1000),
        key: { ...key, statusClass },
        value: BigInt(value),
      })),
    ]),
  )
}

async function readPostings(
  transaction: Transaction,
  counts: ReadonlyMap<string, readonly Count[]>,
  at: Date,
): Promise<Map<string, TenantPosting>> {
  const ids = [...counts.keys()]
  const first = Math.min(...[...counts.values()].flatMap((its) => its.map(({ hour }) => hour.getTime())))
  const months = monthsBetween(new Date(first), at)
  const heads = await transaction.usageTenant.findMany({ where: { tenantId: { in: ids } } })
  const open = await transaction.usageMonth.findMany({
    where: { month: { in: months }, tenantId: { in: ids }, closedAt: null },
    orderBy: { month: 'asc' },
  })
  const withCorrections = heads.filter(({ corrections }) => corrections > 0).map(({ tenantId }) => tenantId)
  const corrected =
    withCorrections.length === 0
      ? []
      : await transaction.usageCorrection.findMany({
          where: { tenantId: { in: withCorrections }, hour: { gte: new Date(first) } },
        })
  const monthsOf = Map.groupBy(open, ({ tenantId }) => tenantId)
  const correctedOf = Map.groupBy(corrected, ({ tenantId }) => tenantId)
  return new Map(
    heads.map(({ tenantId, hash, correctionsHash, corrections, lastHour, closedUntil }) => [
      tenantId,
      {
        tenantId,
        hash,
        correctionsHash,
        corrections,
        lastHour: lastHour ?? undefined,
        closedUntil: closedUntil ?? undefined,
        months: (monthsOf.get(tenantId) ?? []).map((month): OpenMonth => ({
          month: month.month,
          hours: month.hours,
          totals: parseAmounts(month.totals),
          cells: unpackCells(month.breakdown),
          previous: month.previous,
          hash: month.hash,
        })),
        corrected: (correctedOf.get(tenantId) ?? []).map(({ hour, amounts }) => ({
          hour,
          amounts: parseAmounts(amounts),
        })),
      },
    ]),
  )
}

function newPosting(tenantId: string): TenantPosting {
  return {
    tenantId,
    hash: chainStart,
    correctionsHash: chainStart,
    corrections: 0,
    lastHour: undefined,
    closedUntil: undefined,
    months: [],
    corrected: [],
  }
}

async function writePostings(transaction: Transaction, posted: readonly Posted[]): Promise<void> {
  const heads = posted.map(({ posting }) => ({
    tenant_id: posting.tenantId,
    hash: posting.hash,
    last_hour: posting.lastHour?.toISOString() ?? null,
    corrections: posting.corrections,
    corrections_hash: posting.correctionsHash,
  }))
  await transaction.$executeRaw`
    insert into usage_tenants (tenant_id, hash, last_hour, corrections, corrections_hash)
    select * from jsonb_to_recordset(${JSON.stringify(heads)}::jsonb)
      as h(tenant_id text, hash text, last_hour timestamptz, corrections int, corrections_hash text)
    on conflict (tenant_id) do update set
      hash = excluded.hash, last_hour = excluded.last_hour, corrections = excluded.corrections,
      corrections_hash = excluded.corrections_hash`

  const months = posted.flatMap(({ posting, months: changed }) =>
    changed.map((month) => ({
      month: month.month.toISOString(),
      tenant_id: posting.tenantId,
      hours: base64(month.hours),
      totals: amountsText(month.totals),
      breakdown: base64(packCells(month.cells)),
      previous: month.previous,
      hash: month.hash,
    })),
  )
  await transaction.$executeRaw`
    insert into usage_months (month, tenant_id, hours, totals, breakdown, previous, hash)
    select month, tenant_id, decode(hours, 'base64'), totals, decode(breakdown, 'base64'), previous, hash
    from jsonb_to_recordset(${JSON.stringify(months)}::jsonb)
      as m(month timestamptz, tenant_id text, hours text, totals text, breakdown text, previous text, hash text)
    on conflict (month, tenant_id) do update set
      hours = excluded.hours, totals = excluded.totals, breakdown = excluded.breakdown, previous = excluded.previous, hash = excluded.hash`

  const corrections = posted.flatMap((one) => one.corrections)
  if (corrections.length === 0) return
  await transaction.usageCorrection.createMany({
    data: corrections.map((correction) => ({ ...correction, amounts: amountsText(correction.amounts) })),
  })
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}
