// The reconciler's store on the control database.
import type { Seal } from '../keys/seal.ts'
import { LeadershipLost, type ReconcileStore, type Snapshot } from '../reconcile/reconcile-store.ts'
import { secretKinds, type Desired, type Isolation, type SecretKind, type Status } from '../tenants/tenant.ts'
import { changeChannels } from './change-channels.ts'
import type { Database } from './database.ts'
import { toConditions } from './rows.ts'

export function createReconcileStore(database: Database, seal: Seal, now: () => Date): ReconcileStore {
  /**
   * A write of the leader, in one statement: `query` begins with the common table `leader`, writes only where that has
   * a row, and returns its count.
   * @throws LeadershipLost when the epoch is no longer the leader's
   */
  const lead = async (query: Promise<{ leads: number }[]>) => {
    const [row] = await query
    if (row?.leads !== 1) throw new LeadershipLost('another control plane leads')
  }

  return {
    async snapshot(tenantId) {
      const at = now()
      // The newest open one is of the newest generation: opening it superseded the others, in one transaction.
      const [row, operation] = await database.$transaction(
        [
          database.tenant.findUnique({
            where: { id: tenantId },
            include: { sharedDatabase: true, secrets: { orderBy: { createdAt: 'desc' } } },
          }),
          database.operation.findFirst({
            where: { tenantId, state: { in: ['pending', 'running'] } },
            orderBy: { generation: 'desc' },
            select: { id: true, attempts: true, generation: true },
          }),
        ],
        { isolationLevel: 'RepeatableRead' },
      )
      if (row === null) return undefined
      const live = row.secrets.filter((secret) => secret.expiresAt === null || secret.expiresAt > at)
      const opened = (kind: SecretKind) =>
        live.filter((secret) => secret.kind === kind).map((secret) => seal.open(secret.sealed, `${tenantId}:${kind}`))
      const expiries = live.flatMap((secret) => (secret.expiresAt === null ? [] : [secret.expiresAt.getTime()]))
      const snapshot: Snapshot = {
        id: row.id,
        name: row.name,
        regionId: row.regionId,
        isolation: row.isolation as Isolation,
        desired: row.desired as Desired,
        status: row.status as Status,
        generation: row.generation,
        observedGeneration: row.observedGeneration,
        conditions: toConditions(row.conditions),
        homeVersion: row.homeVersion ?? undefined,
        routePhase: row.routePhase,
        purgeAfter: row.purgeAfter ?? undefined,
        database: row.sharedDatabase?.name ?? '',
        secrets: Object.fromEntries(secretKinds.map((kind) => [kind, opened(kind)])) as Record<SecretKind, string[]>,
        nextExpiry: expiries.length === 0 ? undefined : new Date(Math.min(...expiries)),
        operation: operation?.generation === row.generation ? operation : undefined,
      }
      return snapshot
    },

    async unsettled(homeVersion) {
      const rows = await database.$queryRaw<{ id: string }[]>`
        select id from tenants
        where observed_generation < generation
           or status in ('pending', 'failed')
           or (desired = 'deleted' and purge_after <= ${now()})
           or (desired <> 'deleted' and home_version is distinct from ${homeVersion})
           or exists (select from tenant_secrets where tenant_id = tenants.id and expires_at <= ${now()})
        order by created_at`
      return rows.map(({ id }) => id)
    },

    beginOperation: (operationId, epoch) =>
      lead(database.$queryRaw`
        with leader as (select 1 from installation where epoch = ${epoch} for share),
        begun as (
          update operations set state = 'running', attempts = attempts + 1, started_at = coalesce(started_at, ${now()})
          where id = ${operationId}::uuid and state in ('pending', 'running') and exists (select from leader))
        select count(*)::int as leads from leader`),

    recordPublished: (tenantId, { homeVersion, routePhase }, epoch) =>
      lead(database.$queryRaw`
        with leader as (select 1 from installation where epoch = ${epoch} for share),
        published as (
          update tenants set home_version = ${homeVersion}, route_phase = ${routePhase}, updated_at = ${now()}
          where id = ${tenantId} and exists (select from leader)),
        expired as (
          delete from tenant_secrets where tenant_id = ${tenantId} and expires_at <= ${now()} and exists (select from leader))
        select count(*)::int as leads, pg_notify(${changeChannels.published}, ${tenantId})::text as told from leader`),

    // Compare-and-set: a newer generation may have been written meanwhile; it will be observed in its turn. What is being
    // deleted by now says so, whatever was seen before.
    recordObserved: (tenantId, { generation, status, reason, conditions, operation }, epoch) =>
      lead(database.$queryRaw`
        with leader as (select 1 from installation where epoch = ${epoch} for share),
        observed as (
          update tenants set observed_generation = ${generation}, reason = ${reason},
            status = case when desired = 'deleted' then 'deleting' else ${status} end,
            conditions = ${JSON.stringify(conditions)}::jsonb, updated_at = ${now()}
          where id = ${tenantId} and generation >= ${generation} and observed_generation <= ${generation} and exists (select from leader)),
        ended as (
          update operations set
            state = case when ${operation?.error ?? null}::text is null then 'succeeded' else state end,
            step = case when ${operation?.error ?? null}::text is null then 'done' else step end,
            finished_at = case when ${operation?.error ?? null}::text is null then ${now()} else finished_at end,
            error = ${operation?.error ?? null}
          where id = ${operation?.id ?? null}::uuid and state in ('pending', 'running') and exists (select from leader))
        select count(*)::int as leads, pg_notify(${changeChannels.observed}, ${tenantId})::text as told from leader`),

    removeTenant: (tenantId, epoch) =>
      lead(database.$queryRaw`
        with leader as (select 1 from installation where epoch = ${epoch} for share),
        ended as (
          update operations set state = 'succeeded', step = 'done', error = null, finished_at = ${now()}
          where tenant_id = ${tenantId} and state in ('pending', 'running') and exists (select from leader)),
        gone as (delete from tenants where id = ${tenantId} and exists (select from leader))
        select count(*)::int as leads, pg_notify(${changeChannels.published}, ${tenantId})::text as told,
          pg_notify(${changeChannels.observed}, ${tenantId})::text as ended from leader`),
  }
}
