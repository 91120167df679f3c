// The reconciler's store on the control database.
import type { Seal } from '../keys/seal.ts'
import { LeadershipLost, type ReconcileStore, type Snapshot } from '../reconcile/reconcile-store.ts'
import { secretKinds, type Desired, type Isolation, type SecretKind, type Status } from '../tenants/tenant.ts'
import { observedChannel } from './change-channels.ts'
import type { Database, Transaction } from './database.ts'
import { toConditions } from './rows.ts'

export function createReconcileStore(database: Database, seal: Seal, now: () => Date): ReconcileStore {
  /** A write of the leader: fails unless the epoch is still its own. */
  const lead = (epoch: bigint, work: (transaction: Transaction) => Promise<void>) =>
    database.$transaction(async (transaction) => {
      const held = await transaction.$queryRaw<unknown[]>`select 1 from installation where epoch = ${epoch} for share`
      if (held.length === 0) throw new LeadershipLost('another control plane leads')
      await work(transaction)
    })
  const tell = (transaction: Transaction, tenantId: string) => transaction.$executeRaw`select pg_notify(${observedChannel}, ${tenantId})`

  return {
    async snapshot(tenantId) {
      const at = now()
      const row = await database.tenant.findUnique({
        where: { id: tenantId },
        include: { sharedDatabase: true, secrets: { orderBy: { createdAt: 'desc' } } },
      })
      if (row === null) return undefined
      const operation = await database.operation.findFirst({
        where: { tenantId, generation: row.generation, state: { in: ['pending', 'running'] } },
        select: { id: true, attempts: true },
      })
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
        operation: operation ?? undefined,
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
      lead(epoch, async (transaction) => {
        await transaction.operation.updateMany({ where: { id: operationId, startedAt: null }, data: { startedAt: now() } })
        await transaction.operation.updateMany({
          where: { id: operationId, state: { in: ['pending', 'running'] } },
          data: { state: 'running', attempts: { increment: 1 } },
        })
      }),

    recordStep: (operationId, step, epoch) =>
      lead(epoch, async (transaction) => {
        await transaction.operation.updateMany({ where: { id: operationId }, data: { step } })
      }),

    recordPublished: (tenantId, change, epoch) =>
      lead(epoch, async (transaction) => {
        await transaction.tenant.updateMany({ where: { id: tenantId }, data: change })
        await transaction.tenantSecret.deleteMany({ where: { tenantId, expiresAt: { lte: now() } } })
        await tell(transaction, tenantId)
      }),

    recordObserved: (tenantId, observed, epoch) =>
      lead(epoch, async (transaction) => {
        const { generation, status, reason, conditions, operation } = observed
        // Compare-and-set: a newer generation may have been written meanwhile; it will be observed in its turn.
        await transaction.tenant.updateMany({
          where: { id: tenantId, generation: { gte: generation }, observedGeneration: { lte: generation } },
          data: { observedGeneration: generation, status, reason, conditions: conditions.map((condition) => ({ ...condition })) },
        })
        if (operation !== undefined) {
          await transaction.operation.updateMany({
            where: { id: operation.id, state: { in: ['pending', 'running'] } },
            data: 'state' in operation ? { state: 'succeeded', step: 'done', error: null, finishedAt: now() } : { error: operation.error },
          })
        }
        await tell(transaction, tenantId)
      }),

    removeTenant: (tenantId, epoch) =>
      lead(epoch, async (transaction) => {
        await transaction.operation.updateMany({
          where: { tenantId, state: { in: ['pending', 'running'] } },
          data: { state: 'succeeded', step: 'done', error: null, finishedAt: now() },
        })
        await transaction.tenant.deleteMany({ where: { id: tenantId } })
        await tell(transaction, tenantId)
      }),
  }
}
