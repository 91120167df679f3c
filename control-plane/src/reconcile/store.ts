// The reconciler's store on the control database.
import { Prisma } from '../../../prisma/client/client.ts'
import { scratchId } from '../stacks/index.ts'
import type { Seal } from '../platform/seal.ts'
import { lastingConditions } from './conditions.ts'
import { unobservedHome, type ReadyTenant, type ReconcileStore } from './reconcile-store.ts'
import { leaderRow, ledRow } from '../platform/leader-fence.ts'
import { createPlacementStore } from '../placement/index.ts'
import { snapshotReader } from './store-snapshot.ts'
import { reportCommit } from '../platform/change-log.ts'
import type { Database } from '../platform/database.ts'

/** Operations that use a scratch home: a verification, and a restore to a point in time. */
const kindsWithScratch = ['verify', 'restore'] as const

/** The condition of the index of tenants that may be unsettled. */
const mayBeUnsettled = Prisma.sql`(observed_generation < generation or status in ('pending', 'failed') or reason is not null
  or route_phase <> case desired when 'active' then 'ready' else desired end)`

/** A tenant whose home exists, which was observed since the last recovery. */
const observedHome = { AND: [{ homeVersion: { not: null } }, { homeVersion: { not: unobservedHome } }] }

/** The reconciler's store on the control database; `seal` opens the tenants' secrets. */
export function createReconcileStore(database: Database, seal: Seal, now: () => Date): ReconcileStore {
  /**
   * Executes a write of the leader, in one statement that `leaderRow` fences.
   * @throws LeadershipLost if the epoch is no longer the leader's
   */
  const lead = async (query: Promise<{ leads: number }[]>) => {
    ledRow(await query)
    reportCommit(database)
  }

  const snapshots = snapshotReader(database, seal, now)

  return {
    placements: createPlacementStore(database),

    async snapshot(tenantId) {
      const [snapshot] = await snapshots(Prisma.sql`t.id = ${tenantId}`)
      return snapshot
    },

    async regionOf(tenantId) {
      const row = await database.tenant.findUnique({ where: { id: tenantId }, select: { regionId: true } })
      return row?.regionId
    },

    async settledDedicated(regionId) {
      const settled = await snapshots(Prisma.sql`
        t.region_id = ${regionId} and t.isolation <> 'schema-per-tenant' and t.desired <> 'deleted'
          and t.status in ('ready', 'suspended', 'paused', 'warm') and t.generation = t.observed_generation`)
      return settled.map((snapshot) => ({ ...snapshot, operation: undefined }))
    },

    async hasHomes(regionId) {
      return (
        (await database.tenant.count({
          where: { regionId, isolation: 'schema-per-tenant', ...observedHome },
        })) > 0
      )
    },

    async mayHoldHomes(regionId) {
      const where = { regionId, isolation: 'schema-per-tenant', homeVersion: { not: null } }
      return (await database.tenant.count({ where })) > 0
    },

    async hasClusters(regionId) {
      const where = { regionId, isolation: 'cluster-per-tenant', ...observedHome }
      return (await database.tenant.count({ where })) > 0
    },

    async tenantIds() {
      const [rows, verifying] = await Promise.all([
        database.tenant.findMany({ select: { id: true } }),
        database.operation.findMany({
          where: { kind: { in: [...kindsWithScratch] }, state: { in: ['pending', 'running'] } },
          select: { id: true },
        }),
      ])
      return new Set([...rows.map(({ id }) => id), ...verifying.map(({ id }) => scratchId(id))])
    },

    async unsettled(homeVersion) {
      return database.$queryRaw<{ id: string; regionId: string }[]>`
        with candidates as (
          select id from tenants where ${mayBeUnsettled}
          union select id from tenants where desired = 'deleted'
          union select id from tenants where home_version < ${homeVersion} or home_version > ${homeVersion} or home_version is null
          union select tenant_id from placements join host_states using (host_id)
          union select tenant_id from tenant_secrets where expires_at <= ${now()})
        select id, region_id as "regionId" from tenants join candidates using (id)
        where observed_generation < generation
           or status in ('pending', 'failed')
           or (desired = 'deleted' and purge_after <= ${now()})
           or (status <> 'deleting' and reason is not null)
           or (desired in ('active', 'suspended', 'paused') and route_phase <> case desired when 'active' then 'ready' else desired end)
           or (home_version is distinct from ${homeVersion}
               and (desired in ('active', 'warm') or (desired <> 'deleted' and isolation = 'schema-per-tenant')))
           or (isolation = 'cluster-per-tenant' and desired in ('active', 'warm') and exists (
             select from placements p join host_states h on h.host_id = p.host_id
             where p.tenant_id = tenants.id and h.region_id = tenants.region_id))
           or exists (select from tenant_secrets where tenant_id = tenants.id and expires_at <= ${now()})
        order by created_at`
    },

    confirmLead: (epoch) =>
      lead(database.$queryRaw`select count(*)::int as leads from installation where epoch = ${epoch}`),

    recordStep: (operationId, step, epoch) =>
      lead(database.$queryRaw`
        with leader as (${leaderRow(epoch)}),
        stepped as (update operations set step = ${step} where id = ${operationId}::uuid and state = 'running'
          and exists (select from leader))
        select count(*)::int as leads from leader`),

    pinImages: (tenantId, { postgres, runtime }, epoch) =>
      lead(database.$queryRaw`
        with leader as (${leaderRow(epoch)}),
        pinned as (
          update tenants set postgres_image = coalesce(postgres_image, ${postgres}), runtime_image = coalesce(runtime_image, ${runtime})
          where id = ${tenantId} and exists (select from leader))
        select count(*)::int as leads from leader`),

    replaceImages: (tenantId, { postgres, runtime }, epoch) =>
      lead(database.$queryRaw`
        with leader as (${leaderRow(epoch)}),
        replaced as (
          update tenants set postgres_image = ${postgres}, runtime_image = ${runtime}
          where id = ${tenantId} and home_version = ${unobservedHome} and exists (select from leader))
        select count(*)::int as leads from leader`),

    async allocateSubnet(tenantId, regionId, count, epoch, except = []) {
      // Two concurrent calls choose the same number, and the key rejects one of them. That one tries again.
      for (;;) {
        const rows = await database.$queryRaw<{ leads: number; number: number | null }[]>`
          with leader as (${leaderRow(epoch)}),
          tenant as (select 1 from tenants where id = ${tenantId} for key share),
          current as (select number from subnets where stack_id = ${tenantId}),
          free as (
            select candidate as number from generate_series(0, ${count}::int - 1) as candidate
            where candidate <> all (${[...except]}::int[])
              and not exists (select from subnets where region_id = ${regionId} and number = candidate)
            order by candidate limit 1),
          taken as (
            insert into subnets (region_id, number, stack_id)
            select ${regionId}, number, ${tenantId} from free where exists (select from leader) and exists (select from tenant)
              and not exists (select from current)
            on conflict do nothing returning number)
          select (select count(*)::int from leader) as leads,
            coalesce((select number from current), (select number from taken),
              case when exists (select from free) and exists (select from tenant) then -1 end) as number`
        const { number } = ledRow(rows)
        if (number !== -1) return number ?? undefined
      }
    },

    async moveSubnet(tenantId, from, regionId, count, epoch, except) {
      const rows = await database.$queryRaw<{ leads: number; number: number | null }[]>`
        with leader as (${leaderRow(epoch)}),
        other as (select number from subnets where stack_id = ${tenantId} and number <> ${from}),
        free as (
          select candidate as number from generate_series(0, ${count}::int - 1) as candidate
          where candidate <> all (${[...except]}::int[])
            and not exists (select from subnets where region_id = ${regionId} and number = candidate)
          order by candidate < ${from}, candidate limit 1),
        moved as (
          update subnets set number = free.number from free
          where stack_id = ${tenantId} and subnets.number = ${from} and exists (select from leader) returning subnets.number)
        select (select count(*)::int from leader) as leads, coalesce((select number from other), (select number from moved)) as number`
      return ledRow(rows).number ?? undefined
    },

    async deletedTenants(tenantIds) {
      const [deleted, verified] = await Promise.all([
        database.operation.findMany({
          where: { tenantId: { in: [...tenantIds] }, kind: 'delete', state: 'succeeded' },
          select: { tenantId: true },
        }),
        database.operation.findMany({
          where: { kind: { in: [...kindsWithScratch] }, state: { notIn: ['pending', 'running'] } },
          select: { id: true },
        }),
      ])
      const scratch = verified.map(({ id }) => scratchId(id)).filter((id) => tenantIds.includes(id))
      return new Set([...deleted.map(({ tenantId }) => tenantId), ...scratch])
    },

    freeSubnet: (stackId, epoch) =>
      lead(database.$queryRaw`
        with leader as (${leaderRow(epoch)}),
        freed as (
          delete from subnets where stack_id = ${stackId} and exists (select from leader)
            and not exists (select from tenants where id = ${stackId}))
        select count(*)::int as leads from leader`),

    beginOperation: (operationId, epoch) =>
      lead(database.$queryRaw`
        with leader as (${leaderRow(epoch)}),
        begun as (
          update operations set state = 'running', attempts = attempts + 1, started_at = coalesce(started_at, ${now()})
          where id = ${operationId}::uuid and state in ('pending', 'running') and exists (select from leader))
        select count(*)::int as leads from leader`),

    recordPublished: (tenantId, { homeVersion, routePhase }, epoch) =>
      lead(database.$queryRaw`
        with leader as (${leaderRow(epoch)}),
        published as (
          update tenants set home_version = ${homeVersion}, route_phase = ${routePhase}, updated_at = ${now()}
          where id = ${tenantId} and exists (select from leader)),
        expired as (
          delete from tenant_secrets where tenant_id = ${tenantId} and expires_at <= ${now()} and exists (select from leader)),
        changed as (
          insert into changes (kind, tenant_id, transaction_id)
            select 'published', ${tenantId}, pg_current_xact_id()::text::bigint from leader)
        select count(*)::int as leads from leader`),

    // A later generation may have another password, which is still due.
    recordPasswordSet: (tenantId, generation, epoch) =>
      lead(database.$queryRaw`
        with leader as (${leaderRow(epoch)}),
        noted as (
          update tenants set database_password_due = false
          where id = ${tenantId} and generation = ${generation} and exists (select from leader))
        select count(*)::int as leads from leader`),

    recordServicePasswordsSet: (tenantId, generation, epoch) =>
      lead(database.$queryRaw`
        with leader as (${leaderRow(epoch)}),
        noted as (
          update tenants set service_passwords_due = false
          where id = ${tenantId} and generation = ${generation} and exists (select from leader)
          returning id),
        removed as (
          delete from tenant_secrets as former using noted
          where former.tenant_id = noted.id and former.kind in ('runtime_password', 'ddl_password') and exists (
            select from tenant_secrets as newer
            where newer.tenant_id = former.tenant_id and newer.kind = former.kind and newer.created_at > former.created_at)),
        changed as (
          insert into changes (kind, tenant_id, transaction_id)
            select 'published', id, pg_current_xact_id()::text::bigint from noted)
        select count(*)::int as leads from leader`),

    async readyTenants(regionId) {
      return database.$queryRaw<ReadyTenant[]>`
        select id, region_id as "regionId", isolation from tenants where region_id = ${regionId} and desired = 'active'
          and status = 'ready' and observed_generation = generation and reason is null order by created_at`
    },

    recordLoss: (tenantId, condition, epoch) =>
      lead(database.$queryRaw`
        with leader as (${leaderRow(epoch)}),
        changed as (
          update tenants set updated_at = ${now()}, conditions = coalesce(
              (select jsonb_agg(one) from jsonb_array_elements(conditions) as one where one ->> 'type' <> 'Loss'), '[]')
                || ${JSON.stringify([condition])}::jsonb
          where id = ${tenantId} and exists (select from leader)
          returning id, name, plan_id, region_id),
        sent as (
          insert into operator_events (id, type, tenant_id, data, at)
          select gen_random_uuid(), 'tenant.repaired', id,
            jsonb_build_object('tenant_id', id, 'name', name, 'plan', plan_id, 'region', region_id,
              'message', ${condition.message}::text), ${now()}
          from changed),
        noted as (
          insert into changes (kind, tenant_id, transaction_id) select 'observed', id, pg_current_xact_id()::text::bigint from changed)
        select count(*)::int as leads from leader`),

    // Compare-and-set: a newer generation may have been written meanwhile, and is observed later. A tenant that is being deleted has
    // that status, whatever was observed before.
    recordObserved: (tenantId, { generation, status, reason, conditions, operation }, epoch) =>
      lead(database.$queryRaw`
        with leader as (${leaderRow(epoch)}),
        before as (select status from tenants where id = ${tenantId}),
        observed as (
          update tenants set observed_generation = ${generation}, reason = ${reason},
            status = case when desired = 'deleted' then 'deleting' else ${status} end,
            conditions = ${JSON.stringify(conditions.filter(({ type }) => !lastingConditions.includes(type)))}::jsonb || coalesce(
              (select jsonb_agg(one) from jsonb_array_elements(conditions) as one
                where one ->> 'type' = any (${[...lastingConditions]})), '[]'),
                updated_at = ${now()}
          where id = ${tenantId} and generation >= ${generation} and observed_generation <= ${generation} and exists (select from leader)
          returning id, name, plan_id, region_id, status, reason, suspend_reason),
        -- Waking from a pause sends no event.
        sent as (
          insert into operator_events (id, type, tenant_id, data, at)
          select gen_random_uuid(), 'tenant.' || observed.status, id,
            jsonb_build_object('tenant_id', id, 'name', name, 'plan', plan_id, 'region', region_id,
              'status', observed.status, 'previous_status', before.status, 'reason', coalesce(reason, suspend_reason)), ${now()}
          from observed, before
          where observed.status in ('ready', 'failed', 'suspended') and observed.status <> before.status
            and not (observed.status = 'ready' and before.status = 'paused')),
        ended as (
          update operations set
            state = case when ${operation?.hasFailed === true} then 'failed'
              when ${operation?.error ?? null}::text is null then 'succeeded' else state end,
            step = case when ${operation?.error ?? null}::text is null then 'done' else step end,
            finished_at = case when ${operation?.error ?? null}::text is null or ${operation?.hasFailed === true} then ${now()}
              else finished_at end,
            error = ${operation?.error ?? null}
          where id = ${operation?.id ?? null}::uuid and state in ('pending', 'running') and exists (select from leader)),
        changed as (
          insert into changes (kind, tenant_id, transaction_id)
            select 'observed', ${tenantId}, pg_current_xact_id()::text::bigint from leader)
        select count(*)::int as leads from leader`),

    async beginPurge(tenantId, generation, epoch) {
      const rows = await database.$queryRaw<{ leads: number; begun: boolean }[]>`
        with leader as (${leaderRow(epoch)}),
        begun as (
          update tenants set purge_begun_at = coalesce(purge_begun_at, ${now()})
          where id = ${tenantId} and desired = 'deleted' and generation = ${generation} and exists (select from leader)
          returning id)
        select (select count(*)::int from leader) as leads, exists (select from begun) as begun`
      return ledRow(rows).begun
    },

    removeTenant: (tenantId, epoch) =>
      lead(database.$queryRaw`
        with leader as (${leaderRow(epoch)}),
        ended as (
          update operations set state = 'succeeded', step = 'done', error = null, finished_at = ${now()}
          where tenant_id = ${tenantId} and state in ('pending', 'running') and kind not in ('backup', 'verify')
            and exists (select from leader)),
        freed as (delete from subnets where stack_id = ${tenantId} and exists (select from leader)),
        gone as (delete from tenants where id = ${tenantId} and exists (select from leader)),
        changed as (
          insert into changes (kind, tenant_id, transaction_id)
          select kind, ${tenantId}, pg_current_xact_id()::text::bigint from leader, (values ('published'), ('observed')) as kinds (kind))
        select count(*)::int as leads from leader`),
  }
}
