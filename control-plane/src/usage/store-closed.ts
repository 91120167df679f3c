// The part of the ledger that billing reads, in the control database. Every read is checked against its chains.
import type { ClosedMonth, StoredMonth } from './closed-usage.ts'
import { chainOf, chainStart, correctionLink } from './hash-chain.ts'
import { unpackHours } from './packed-hours.ts'
import { toCorrection, type StoredCorrection } from './store-correction-rows.ts'
import type { Database } from '../platform/database.ts'

interface MonthRow {
  tenant_id: string
  hours: Uint8Array | null
  previous: string | null
  hash: string | null
  closed_at: Date | null
  head: string | null
  corrections: StoredCorrection[] | null
}

/** The part of the ledger that billing reads. Every read checks the stored data against its chain of hashes. */
export type ClosedUsage = ReturnType<typeof createClosedUsage>

/** Creates the part of the ledger that billing reads, on the control database. */
export function createClosedUsage(database: Database) {
  // One statement is one snapshot: a correction is never read without the closing that made it one.
  const months = async (tenantIds: readonly string[], month: Date): Promise<ReadonlyMap<string, StoredMonth>> => {
    const rows = await database.$queryRaw<MonthRow[]>`
      select t.id as tenant_id, m.hours, m.previous, m.hash, m.closed_at, u.hash as head,
        (select json_agg(c order by number) from usage_corrections c where c.billed_month = ${month} and c.tenant_id = t.id) as corrections
      from unnest(${[...tenantIds]}::text[]) t(id)
      left join usage_months m on m.month = ${month} and m.tenant_id = t.id
      left join usage_tenants u on u.tenant_id = t.id`
    return new Map(rows.map((row) => [row.tenant_id, storedMonth(row, month)]))
  }

  return {
    /**
     * Reads the month of many tenants, all at one instant. Each tenant has an entry, whose errors show when it is read.
     */
    months,

    /**
     * Reads a tenant's month.
     * @param month its first instant, UTC
     * @returns an empty open month where the ledger has nothing
     * @throws Error when the stored month does not match its chain
     */
    async month(tenantId: string, month: Date): Promise<ClosedMonth> {
      const stored = (await months([tenantId], month)).get(tenantId)
      if (stored === undefined) throw new Error('The query has no row for the tenant.')
      return stored.read()
    },

    /**
     * Returns the end of a tenant's closed hours, as an hour's start. Reads after this call include all of them.
     * @param settled hours from this one on are not to be closed yet
     */
    async closedUntil(tenantId: string, settled: Date): Promise<Date> {
      // The same rules as in closing hours: all gateways, the tenant's own home while it exists, and counts that are
      // not posted yet.
      const [row] = await database.$queryRaw<{ until: Date }[]>`
        select greatest(t.last_hour + interval '1 hour', least(
          ${settled}::timestamptz,
          (select min(complete_until) from usage_sources where tenant_id is null and retired_at is null),
          (select min(complete_until) from usage_sources s
            where s.tenant_id = t.id and retired_at is null and exists (select from tenants where id = t.id)),
          (select min(hour) from usage_counters c where c.tenant_id = t.id and dirty and hour > coalesce(t.last_hour, '-infinity'))
        )) as until
        from (select one.id, u.last_hour from (select ${tenantId}::text as id) one left join usage_tenants u on u.tenant_id = one.id) t`
      if (row === undefined) throw new Error('The query has no row.')
      return row.until
    },

    /** Returns the tenants whose month is closed, deleted ones too, in the order of their ids. */
    async closedTenants(
      month: Date,
      { after = '', limit }: { after: string | undefined; limit: number },
    ): Promise<string[]> {
      const rows = await database.usageMonth.findMany({
        where: { month, tenantId: { gt: after }, closedAt: { not: null } },
        select: { tenantId: true },
        orderBy: { tenantId: 'asc' },
        take: limit,
      })
      return rows.map(({ tenantId }) => tenantId)
    },
  }
}

function storedMonth(row: MonthRow, month: Date): StoredMonth {
  const { tenant_id: tenantId, hours, closed_at: closedAt } = row
  const corrections = row.corrections ?? []
  const end = row.hash ?? row.head ?? chainStart
  return {
    closedAt: closedAt ?? undefined,
    hasHours: hours !== null && hours.length > 0,
    corrected: corrections.map(({ hour }) => new Date(hour)),
    read: () =>
      checked({
        tenantId,
        month,
        hours: hours === null ? [] : unpackHours(hours, tenantId, month),
        corrections: corrections.map((correction) => toCorrection(tenantId, correction)),
        previous: row.previous ?? end,
        hash: end,
        closedAt: closedAt ?? undefined,
      }),
  }
}

/**
 * Checks a month against its chains.
 * @throws Error when one does not match
 */
function checked(month: ClosedMonth): ClosedMonth {
  const name = `${month.month.toISOString().slice(0, 7)} of ${month.tenantId}`
  if (chainOf(month.previous, month.hours) !== month.hash)
    throw new Error(`The closed hours of ${name} do not match their chain.`)
  for (const correction of month.corrections) {
    if (correctionLink(correction.previous, correction) !== correction.hash)
      throw new Error(`Correction ${correction.number} of ${name} does not match its chain.`)
  }
  return month
}
