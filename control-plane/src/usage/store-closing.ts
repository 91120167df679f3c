// Closes the ledger's hours and months in the control database, for the leader.
import { nextMonth } from '../platform/months.ts'
import { amountsText } from './amounts-text.ts'
import { chainStart } from './hash-chain.ts'
import { noAmounts } from './hour-bucket.ts'
import { requireLead } from '../platform/leader-fence.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { postTenants } from './store-posting.ts'

/** A range of tenants: `from` ≤ id < `to`. No write covers all tenants at once. */
export interface TenantRange {
  from: string
  to: string
}

export interface MissingSources {
  gateway: number
  home: number
}

const noTotals = amountsText(noAmounts())

/** The leader's writes to the ledger. Every write throws `LeadershipLost` when another control plane leads. */
export type LedgerClosing = ReturnType<typeof createLedgerClosing>

/**
 * Creates the leader's part of the ledger, which closes hours and months, on the control database. Its writes throw
 * LeadershipLost once another control plane leads.
 */
export function createLedgerClosing(database: Database, now: () => Date) {
  return {
    /**
     * Returns the time until which all active sources that count for all tenants are complete; undefined when there is
     * none.
     */
    async completeUntil(): Promise<Date | undefined> {
      const rows = await database.$queryRaw<{ until: Date | null }[]>`
        select min(complete_until) as until from usage_sources where tenant_id is null and retired_at is null`
      return rows[0]?.until ?? undefined
    },

    /** Counts the active sources that are not complete until then: gateways, and homes of existing tenants. */
    async missing(until: Date): Promise<MissingSources> {
      const [row] = await database.$queryRaw<{ gateway: number; home: number }[]>`
        select (count(*) filter (where tenant_id is null))::int as gateway, (count(*) filter (where tenant_id is not null))::int as home
        from usage_sources s
        where retired_at is null and complete_until < ${until}
          and (tenant_id is null or exists (select from tenants where id = s.tenant_id))`
      return row ?? { gateway: 0, home: 0 }
    },

    /**
     * Posts the counts of hours before `until` as closed hours and corrections. A tenant whose own home is not complete
     * until then is posted as far as the home is.
     * @param page tenants after an id, at most `limit`
     * @returns the last tenant that was processed; undefined when none remains
     * @throws LeadershipLost
     */
    closeHours: (
      until: Date,
      { after, limit }: { after: string; limit: number },
      epoch: bigint,
    ): Promise<string | undefined> =>
      leading(database, epoch, async (transaction) => {
        // The home of a deleted tenant reports nothing more.
        const due = await transaction.$queryRaw<{ tenant_id: string; until: Date }[]>`
          with due as (
            select distinct tenant_id from usage_counters
            where dirty and hour < ${until} and tenant_id > ${after} order by tenant_id limit ${limit}
          )
          select tenant_id, least(${until}::timestamptz, (
            select min(complete_until) from usage_sources s
            where s.tenant_id = due.tenant_id and retired_at is null and exists (select from tenants where id = due.tenant_id)
          )) as until
          from due order by tenant_id`
        if (due.length > 0)
          await postTenants(
            transaction,
            due.map(({ tenant_id: tenantId, until: its }) => ({ tenantId, until: its })),
            now(),
          )
        return due.length < limit ? undefined : due.at(-1)?.tenant_id
      }),

    /**
     * Returns the first month that is not closed for a tenant with a plan or usage in it; undefined when there is none.
     */
    async firstOpenMonth(): Promise<Date | undefined> {
      const rows = await database.$queryRaw<{ month: Date | null }[]>`
        select least(
          (select min(month) from usage_months where closed_at is null),
          (select date_trunc('month', min(greatest(p.since, u.closed_until)), 'UTC')
            from plan_periods p left join usage_tenants u using (tenant_id)
            where coalesce(p.until, 'infinity') > greatest(p.since, u.closed_until)),
          (select min(billed_month) from usage_corrections c join usage_tenants u using (tenant_id) where c.billed_month >= u.closed_until)
        ) as month`
      return rows[0]?.month ?? undefined
    },

    /**
     * Closes the month of each tenant whose usage is complete and whose earlier months are closed. Tenants with a plan but
     * without usage are included.
     * @returns the number of tenants
     * @throws LeadershipLost
     */
    closeMonth: (month: Date, { from, to }: TenantRange, epoch: bigint): Promise<number> =>
      leading(database, epoch, async (transaction) => {
        const end = nextMonth(month)
        // A month without hours is in the chain before the next one with hours, or at the chain's end.
        return transaction.$executeRaw`
          with due as (
            select tenant_id, coalesce(
              (select previous from usage_months l
                where l.tenant_id = c.tenant_id and l.month > ${month} and l.hours <> '' order by l.month limit 1),
              u.hash, ${chainStart}
            ) as hash
            from (
              select tenant_id from plan_periods
              where since < ${end} and coalesce(until, 'infinity') > ${month} and tenant_id >= ${from} and tenant_id < ${to}
              union select tenant_id from usage_months
              where month = ${month} and closed_at is null and tenant_id >= ${from} and tenant_id < ${to}
              union select tenant_id from usage_corrections
              where billed_month = ${month} and tenant_id >= ${from} and tenant_id < ${to}
            ) c
            left join usage_tenants u using (tenant_id)
            where coalesce(u.closed_until, '-infinity') < ${end}
              and not exists (
                select from usage_sources s where s.tenant_id = c.tenant_id and s.retired_at is null and s.complete_until < ${end}
                  and exists (select from tenants where id = s.tenant_id))
              and not exists (select from usage_counters k where k.tenant_id = c.tenant_id and k.dirty and k.hour < ${end})
              and not exists (select from usage_months o where o.tenant_id = c.tenant_id and o.month < ${month} and o.closed_at is null)
          ), heads as (
            insert into usage_tenants (tenant_id, hash, corrections_hash, closed_until)
            select tenant_id, ${chainStart}, ${chainStart}, ${end} from due
            on conflict (tenant_id) do update set closed_until = excluded.closed_until
          )
          insert into usage_months (month, tenant_id, hours, totals, breakdown, previous, hash, closed_at)
          select ${month}, tenant_id, '', ${noTotals}, '', hash, hash, ${now()} from due
          on conflict (month, tenant_id) do update set
            closed_at = excluded.closed_at,
            previous = case when usage_months.hours = '' then excluded.previous else usage_months.previous end,
            hash = case when usage_months.hours = '' then excluded.hash else usage_months.hash end`
      }),

    /**
     * Returns the start of the hours whose counters are stored. Counts of earlier hours, from sources that had completed
     * them, are repeats.
     */
    async retainedFrom(): Promise<Date> {
      const rows = await database.$queryRaw<{ kept_from: Date }[]>`select kept_from from usage_closing`
      return rows[0]?.kept_from ?? new Date(0)
    },

    /**
     * Removes posted counters of hours before `retainedFrom`, where their source had completed the hour.
     * @throws LeadershipLost
     */
    removePosted: ({ from, to }: TenantRange, epoch: bigint): Promise<void> =>
      leading(database, epoch, async (transaction) => {
        await transaction.$executeRaw`
          delete from usage_counters c using usage_sources s, usage_closing k
          where c.tenant_id >= ${from} and c.tenant_id < ${to} and not c.dirty and c.hour < k.kept_from
            and s.source = c.source and s.complete_until > c.hour`
      }),

    /**
     * Moves the start of the hours whose counters are stored.
     * @throws LeadershipLost
     */
    retainFrom: (hour: Date, epoch: bigint): Promise<void> =>
      leading(database, epoch, async (transaction) => {
        await transaction.$executeRaw`update usage_closing set kept_from = greatest(kept_from, ${hour})`
      }),
  }
}

/**
 * Runs a transaction of the leader. A new leader waits for its end; an old one writes nothing.
 * @throws LeadershipLost
 */
async function leading<T>(
  database: Database,
  epoch: bigint,
  work: (transaction: Transaction) => Promise<T>,
): Promise<T> {
  return database.$transaction(
    async (transaction) => {
      await requireLead(transaction, epoch)
      return work(transaction)
    },
    { maxWait: 10_000, timeout: 60_000 },
  )
}
