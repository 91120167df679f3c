// The API's reads of the ledger in the control database. Each read is one statement, which sees one instant.
import type { KeyLimit } from '../keys/index.ts'
import { nextMonth } from '../platform/months.ts'
import { parseAmounts } from './amounts-text.ts'
import { chainStart } from './hash-chain.ts'
import { addAmounts, joinAmounts, noAmounts, type Amounts, type HourBucket } from './hour-bucket.ts'
import { amountOf, isBrokenDown } from './meters.ts'
import { addToCell, unpackCells, type Cells } from './packed-cells.ts'
import { unpackHours } from './packed-hours.ts'
import type { MonthUsage, MonthHours, TenantMonth } from './month-usage.ts'
import { toCorrection, type StoredCorrection } from './store-correction-rows.ts'
import type { Database } from '../platform/database.ts'

/** Open amounts: the hour in seconds, the meter, and the change since it was last posted. */
type OpenAmounts = [hour: number, meter: string, value: string][]
type OpenCounts = [
  hour: number,
  meter: string,
  group: string,
  method: string,
  statusClass: string,
  bucket: string,
  value: string,
][]

interface MonthRow {
  hours: Uint8Array | null
  totals: string | null
  breakdown: Uint8Array | null
  previous: string | null
  hash: string | null
  head: string | null
  closed_at: Date | null
  open: OpenCounts | null
  corrections: StoredCorrection[] | null
}

/** Reads closed hours and open counts. Each read sees one instant. */
export type UsagePostings = ReturnType<typeof createUsagePostings>

/** Creates the API's part of the ledger, on the control database. Each read sees one instant. */
export function createUsagePostings(database: Database) {
  /** Reads a month. A closed month has no open counts, because later ones are billed with another month. */
  const read = async (tenantId: string, month: Date, withHours: boolean) => {
    const rows = await database.$queryRaw<MonthRow[]>`
      select case when ${withHours} then m.hours end as hours, m.totals, m.breakdown, m.previous, m.hash, m.closed_at,
        (select hash from usage_tenants where tenant_id = ${tenantId}) as head,
        (select json_agg(json_build_array(hour, meter, "group", method, status_class, bucket, value) order by hour) from (
          select extract(epoch from hour)::bigint as hour, meter, "group", method, status_class, bucket, sum(value - booked)::text as value
          from usage_counters
          where tenant_id = ${tenantId} and dirty and hour >= ${month} and hour < ${nextMonth(month)} and m.closed_at is null
          group by usage_counters.hour, meter, "group", method, status_class, bucket having sum(value - booked) > 0
        ) o) as open,
        (select json_agg(c order by number) from usage_corrections c
          where c.tenant_id = ${tenantId} and c.hour >= ${month} and c.hour < ${nextMonth(month)}) as corrections
      from (select 1) one left join usage_months m on m.month = ${month} and m.tenant_id = ${tenantId}`
    const row = rows[0]
    if (row === undefined) throw new Error('The query has no row.')
    return { row, open: openHours(tenantId, row.open ?? []) }
  }

  return {
    /**
     * Reads a month's usage.
     * @param month its first instant, UTC
     */
    async month(tenantId: string, month: Date): Promise<MonthUsage> {
      const { row, open } = await read(tenantId, month, false)
      return toMonthUsage(tenantId, row, open)
    },

    /** Reads a month's usage with its hours. */
    async hours(tenantId: string, month: Date): Promise<MonthHours> {
      const { row, open } = await read(tenantId, month, true)
      return {
        ...toMonthUsage(tenantId, row, open),
        closed: unpackHours(row.hours ?? new Uint8Array(), tenantId, month),
        open,
        previous: row.previous ?? row.head ?? chainStart,
        hash: row.hash ?? row.head ?? chainStart,
      }
    },

    /**
     * Returns the tenants that existed before the month's end, or had usage in it, in the order of their ids.
     * @param keyLimit what the caller's key is limited to; with a region, only tenants that exist in it
     */
    async page(
      month: Date,
      { after, limit }: { after: string; limit: number },
      keyLimit: KeyLimit,
    ): Promise<TenantMonth[]> {
      const end = nextMonth(month)
      const { tenantId: only = null, region = null } = keyLimit
      const rows = await database.$queryRaw<
        {
          tenant_id: string
          name: string | null
          totals: string | null
          closed_at: Date | null
          open: OpenAmounts | null
        }[]
      >`
        with ids as (
          select tenant_id from (
            (select id as tenant_id from tenants
              where id > ${after} and created_at < ${end} and desired <> 'warm'
                and (${only}::text is null or id = ${only}) and (${region}::text is null or region_id = ${region})
              order by id limit ${limit})
            union (select u.tenant_id from usage_months u where u.month = ${month} and u.tenant_id > ${after}
                and (${only}::text is null or u.tenant_id = ${only})
                and (${region}::text is null
                  or exists (select from tenants t where t.id = u.tenant_id and t.region_id = ${region}))
              order by u.tenant_id limit ${limit})
          ) u order by tenant_id limit ${limit}
        )
        select ids.tenant_id, t.name, m.totals, m.closed_at,
          (select json_agg(json_build_array(hour, meter, value)) from (
            select extract(epoch from hour)::bigint as hour, meter, sum(value - booked)::text as value
            from usage_counters c
            where c.tenant_id = ids.tenant_id and dirty and hour >= ${month} and hour < ${end} and m.closed_at is null
            group by c.hour, meter
          ) o) as open
        from ids left join tenants t on t.id = ids.tenant_id left join usage_months m on m.month = ${month} and m.tenant_id = ids.tenant_id
        order by ids.tenant_id`
      return rows.map(({ tenant_id: tenantId, name, totals, closed_at: closedAt, open }) => ({
        tenantId,
        name,
        totals: joined(
          totals,
          openHours(
            tenantId,
            (open ?? []).map(([hour, meter, value]) => [hour, meter, '', '', '', '', value]),
          ),
        ),
        closedAt: closedAt ?? undefined,
      }))
    },

    /** Whether the tenant exists or existed. Warm tenants, which are not assigned yet, do not count. */
    async isKnown(tenantId: string): Promise<boolean> {
      const rows = await database.$queryRaw<unknown[]>`
        select 1 from usage_tenants where tenant_id = ${tenantId}
        union all select 1 from plan_periods where tenant_id = ${tenantId} limit 1`
      return rows.length > 0
    },

    /**
     * Returns the active sources, of gateways and of the tenant's home, that may still have counts of hours before
     * `until`.
     */
    async missing(until: Date, tenantId = ''): Promise<string[]> {
      const rows = await database.$queryRaw<{ source: string }[]>`
        select source from usage_sources
        where (tenant_id is null or tenant_id = ${tenantId}) and retired_at is null and complete_until < ${until} order by source limit 100`
      return rows.map(({ source }) => source)
    },
  }
}

function toMonthUsage(tenantId: string, row: MonthRow, open: readonly HourBucket[]): MonthUsage {
  const cells: Cells = unpackCells(row.breakdown ?? new Uint8Array())
  for (const [, meter, group, method, statusClass, bucket, value] of row.open ?? []) {
    if (isBrokenDown(meter)) addToCell(cells, { meter, group, method, statusClass, bucket }, BigInt(value))
  }
  const corrections = (row.corrections ?? []).map((correction) => toCorrection(tenantId, correction))
  return {
    totals: joined(row.totals, open),
    cells,
    closedAt: row.closed_at ?? undefined,
    isThere: row.totals !== null || open.length > 0,
    corrections,
  }
}

function joined(totals: string | null, open: readonly HourBucket[]): Amounts {
  return open.map(({ amounts }) => amounts).reduce(joinAmounts, totals === null ? noAmounts() : parseAmounts(totals))
}

function openHours(tenantId: string, counts: OpenCounts): HourBucket[] {
  const hours = new Map<number, Amounts>()
  for (const [hour, meter, , , , , value] of counts) {
    const name = amountOf(meter)
    if (name !== undefined)
      hours.set(hour, addAmounts(hours.get(hour) ?? noAmounts(), { ...noAmounts(), [name]: BigInt(value) }))
  }
  return [...hours]
    .sort(([a], [b]) => a - b)
    .map(([hour, amounts]) => ({ tenantId, hour: new Date(hour * 1000), amounts }))
}
