// The control plane's API over a fleet of many tenants, filled in its database: usage of a month, conditions, and a few
// tenants for each reason for attention.
import { openDatabase } from '#control-plane/platform/database.ts'
import { startOfMonth } from '#control-plane/platform/months.ts'
import { createQuotaWatchStore } from '#control-plane/quotas/index.ts'
import { startApi, type TestApi } from '#test/support/control-plane/api.ts'

export interface FleetScene {
  api: TestApi
  /** The address at which the API listens. */
  url: string
  close(): Promise<void>
}

/**
 * Fills the fleet. Of 1,000 tenants, 10 have used 80 % of a quota, 5 drift, 5 have an unproven backup, 2 have failed; 100
 * have the plan Pro, 5 Enterprise, the rest Free. Each has leases of two gateways, a read home and six conditions.
 */
export async function openFleetScene(tenants: number, report: (line: string) => void): Promise<FleetScene> {
  const teardowns: (() => Promise<void> | void)[] = []
  const api = await startApi({ teardown: (work) => void teardowns.unshift(work) }, { control: false })
  const created = "now() - interval '1 year' + n * interval '1 second'"
  await api.sql(
    `insert into tenants (id, name, plan_id, region_id, isolation, status, reason, home_version, observed_generation, route_phase,
       conditions, created_at, updated_at, proof_seen_at, proven_at)
     select 't_' || substr(md5(n::text), 1, 20), 'customer-' || n || '-' || substr(md5(n::text), 21, 6),
       case when n % 1000 < 5 then 'Enterprise' when n % 1000 < 105 then 'Pro' else 'Free' end,
       'local', 'schema-per-tenant', case when n % 1000 < 2 then 'failed' else 'ready' end,
       case when n % 1000 < 2 then 'The home cannot be created.' end, 'v1', 1, 'ready',
       (select jsonb_agg(jsonb_build_object('type', c.type, 'status', 'True', 'reason', 'Observed', 'message', '',
           'observed_at', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')))
         from unnest(array['Home', 'Route', 'Runtime', 'Secrets', 'Plan'] || case when n % 1000 between 10 and 14
           then array['Drift'] else array['Backup'] end) c(type)),
       ${created}, ${created}, now(), now() - case when n % 1000 between 20 and 24 then interval '20 days' else interval '1 hour' end
     from generate_series(1, $1::int) n`,
    [tenants],
  )
  report(`${tenants} tenants`)
  const month = "date_trunc('month', now() at time zone 'UTC')::date"
  await api.sql(
    `insert into request_leases (tenant_id, month, source, boot, granted, used, hour)
     select t.id, ${month}, 'gateway-' || g, '00000000-0000-4000-8000-000000000000', used, used, date_trunc('hour', now())
     from tenants t join plans p on p.id = t.plan_id cross join generate_series(0, 1) g
     cross join lateral (select (p.requests_per_month * (case when substr(t.id, 3, 2) = '00' then 0.45 else 0.2 end))::bigint as used) u
     where p.requests_per_month is not null`,
  )
  await api.sql(
    `insert into request_budgets (tenant_id, month) select tenant_id, month from request_leases group by tenant_id, month`,
  )
  await api.sql(
    `insert into home_readings (tenant_id, books, read_at, document_bytes, file_bytes, document_byte_seconds, file_byte_seconds)
     select t.id, gen_random_uuid(), now() - random() * interval '1 minute',
       least(coalesce(p.document_bytes, 1e11), 1e12) * (case when substr(t.id, 3, 3) = '100' then 0.85 else random() * 0.7 end),
       least(coalesce(p.file_bytes, 1e11), 1e12) * (case when substr(t.id, 3, 3) = '200' then 0.95 else random() * 0.7 end), 1, 1
     from tenants t join plans p on p.id = t.plan_id`,
  )
  await api.sql(
    `insert into connection_budgets (tenant_id, peak, peak_limit, peak_month)
     select t.id, p.realtime_connections * 0.9, p.realtime_connections, ${month}
     from tenants t join plans p on p.id = t.plan_id
     where substr(t.id, 3, 3) = '300' and p.realtime_connections is not null`,
  )
  await api.sql('vacuum analyze')
  const database = openDatabase(api.controlUrl)
  const begin = performance.now()
  await createQuotaWatchStore(database, () => new Date()).refresh(startOfMonth(new Date()))
  report(`quotas checked in ${(performance.now() - begin).toFixed(0)} ms`)
  await database.$disconnect()
  await api.sql('analyze')
  const url = await api.app.listen({ host: '127.0.0.1', port: 0 })
  return {
    api,
    url,
    async close() {
      for (const work of teardowns) await work()
    },
  }
}
