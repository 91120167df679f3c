// Writes the counts of sources into the ledger, in the control database.
import { checkPush } from './checked-push.ts'
import { startOfHour } from './hours.ts'
import { homeEgressGroup, homeMeters } from './meters.ts'
import { forGood, homeSource, type HomeAmounts, type HomeReading } from './home-reading.ts'
import type { Database } from '../platform/database.ts'
import type { UsagePush } from '@tenantry/contract'

interface SourceCounters {
  source: string
  tenantId: string | null
  boot: string
  completeUntil: Date | undefined
  isStopped: boolean
  counters: {
    tenant_id: string
    hour: string
    meter: string
    group: string
    method: string
    status_class: string
    bucket: string
    value: number | string
  }[]
}

/** Records the counts of gateways and homes. */
export type UsageLedger = ReturnType<typeof createUsageLedger>

/** Creates the part of the ledger that receives counts, on the control database. */
export function createUsageLedger(database: Database, now: () => Date) {
  /**
   * Records counts and their source's completeness in one statement, so that neither is stored without the other.
   * Counts of hours that were closed and removed from the table are repeats when their source had completed the hour.
   */
  const record = async ({ source, tenantId, boot, completeUntil, isStopped, counters }: SourceCounters) => {
    const at = now()
    const first = counters.reduce(
      (earliest, { hour }) => Math.min(earliest, Date.parse(hour)),
      startOfHour(at).getTime(),
    )
    await database.$executeRaw`
      with retained as (
        select least(kept_from, coalesce((select complete_until from usage_sources where source = ${source}), '-infinity')) as start
        from usage_closing
      ), inserted as (
        insert into usage_counters (source, boot, tenant_id, hour, meter, "group", method, status_class, bucket, value)
        select ${source}, ${boot}::uuid, tenant_id, hour, meter, "group", method, status_class, bucket, max(value)
        from jsonb_to_recordset(${JSON.stringify(counters)}::jsonb)
          as c(tenant_id text, hour timestamptz, meter text, "group" text, method text, status_class text, bucket text, value bigint)
        where hour >= (select start from retained)
        group by tenant_id, hour, meter, "group", method, status_class, bucket
        order by tenant_id, hour, meter, "group", method, status_class, bucket
        on conflict (tenant_id, hour, meter, "group", method, status_class, bucket, source, boot)
        do update set value = excluded.value, dirty = true where excluded.value > usage_counters.value
      )
      insert into usage_sources (source, tenant_id, complete_until, first_seen_at, last_seen_at, retired_at)
      values (${source}, ${tenantId}, ${completeUntil ?? new Date(first)}, ${at}, ${at}, ${isStopped ? at : null}::timestamptz)
      on conflict (source) do update set
        -- A home that had ended reports again after its tenant was undeleted.
        complete_until = coalesce(
          greatest(nullif(usage_sources.complete_until, ${forGood}), ${completeUntil ?? null}), usage_sources.complete_until),
        last_seen_at = ${at},
        retired_at = excluded.retired_at`
  }

  return {
    /**
     * Records a push. Repeats and reordering have no effect, because the greatest value of a counter counts.
     * @throws ControlError INVALID_FIELD for an invalid hour, or a boot that is not a UUID; nothing was recorded then
     */
    async record(push: UsagePush): Promise<void> {
      checkPush(push)
      const { source, boot, counters, complete_until: completeUntil, stopped = false } = push
      await record({
        source,
        tenantId: null,
        boot,
        counters,
        isStopped: stopped,
        completeUntil: completeUntil === undefined ? undefined : new Date(completeUntil),
      })
    },

    /**
     * Records what the control plane itself has read, like `record`. The tenant's hours wait for its home from the first
     * reading on.
     */
    async recordHome({ tenantId, boot, hours, completeUntil }: HomeReading): Promise<void> {
      const counters = hours.flatMap(({ hour, amounts }) =>
        homeNames
          .filter((name) => amounts[name] > 0n)
          .map((name) => ({
            tenant_id: tenantId,
            hour: hour.toISOString(),
            meter: homeMeters[name],
            group: name === 'egressBytes' ? homeEgressGroup : '',
            method: '',
            status_class: '',
            bucket: '',
            value: String(amounts[name]),
          })),
      )
      await record({ source: homeSource(tenantId), tenantId, boot, counters, completeUntil, isStopped: false })
    },
  }
}

const homeNames: readonly (keyof HomeAmounts)[] = [
  'egressBytes',
  'documentByteSeconds',
  'fileByteSeconds',
  'functionInvocations',
  'functionMilliseconds',
  'functionCpuMicroseconds',
  'functionMemoryKibMilliseconds',
  'realtimeMessages',
]
