// The usage ledger on the control database.
import type { UsageLedger } from '../usage/usage-ledger.ts'
import type { Database } from './database.ts'

export function createUsageLedger(database: Database): UsageLedger {
  return {
    async record({ source, boot, counters }) {
      if (counters.length === 0) return
      await database.$executeRaw`
        insert into usage_counters (source, boot, tenant_id, hour, meter, "group", method, status_class, bucket, value)
        select ${source}, ${boot}::uuid, tenant_id, hour, meter, "group", method, status_class, bucket, max(value)
        from jsonb_to_recordset(${JSON.stringify(counters)}::jsonb)
          as c(tenant_id text, hour timestamptz, meter text, "group" text, method text, status_class text, bucket text, value bigint)
        group by tenant_id, hour, meter, "group", method, status_class, bucket
        on conflict (tenant_id, hour, meter, "group", method, status_class, bucket, source, boot)
        do update set value = greatest(usage_counters.value, excluded.value)`
    },

    async sums(tenantId, from, to) {
      const rows = await database.$queryRaw<{ meter: string; group: string; method: string; status_class: string; total: bigint }[]>`
        select meter, "group", method, status_class, sum(value)::bigint as total from usage_counters
        where tenant_id = ${tenantId} and hour >= ${from} and hour < ${to} and meter in ('requests', 'egress_bytes')
        group by meter, "group", method, status_class`
      const peaks = await database.$queryRaw<{ peak: bigint }[]>`
        select sum(value)::bigint as peak from usage_counters
        where tenant_id = ${tenantId} and hour >= ${from} and hour < ${to} and meter = 'connections_peak'
        group by hour`
      return {
        requests: rows
          .filter(({ meter }) => meter === 'requests')
          .map(({ group, method, status_class: statusClass, total }) => ({ group, method, statusClass, count: Number(total) })),
        egressBytes: rows.filter(({ meter }) => meter === 'egress_bytes').reduce((sum, { total }) => sum + Number(total), 0),
        connectionPeaks: peaks.map(({ peak }) => Number(peak)),
      }
    },
  }
}
