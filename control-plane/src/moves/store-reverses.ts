// The leader's reads and writes of the time after moves, in which they can be reverted, in the control database.
import { recordChange } from '../platform/change-log.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { ledWrite } from '../platform/led-write.ts'
import { regionAfter, type MoveJob, type ReverseJob } from './move.ts'
import type { ReverseFacts } from './reverse.ts'
import { homeLocation, toJobs, type JobRow } from './store-ledger.ts'

/** The leader's ledger of reverses. Every write throws `LeadershipLost` when another control plane leads. */
export type ReverseLedger = ReturnType<typeof createReverseLedger>

/** Creates the ledger on the control database. */
export function createReverseLedger(database: Database) {
  const write = <T>({ tenantId }: MoveJob, epoch: bigint, work: (transaction: Transaction) => Promise<T>) =>
    ledWrite(database, epoch, [`tenant:${tenantId}`], work)

  const merge = async (transaction: Transaction, { operationId, tenantId }: ReverseJob, part: object) => {
    await transaction.$executeRaw`
      update operations set move = jsonb_set(move, '{reverse}', (move -> 'reverse') || ${JSON.stringify(part)}::jsonb)
      where id = ${operationId}::uuid`
    await recordChange(transaction, 'observed', tenantId)
  }

  const unsettledRevert = ({ operationId, tenantId }: ReverseJob, transaction: Transaction | Database) =>
    transaction.$queryRaw<JobRow[]>`
      select id, tenant_id, state, step, attempts, move from operations
      where tenant_id = ${tenantId} and kind = 'move' and move ->> 'reverts' = ${operationId}
        and not coalesce((move ->> 'settled')::boolean, false)`

  return {
    /** Returns the moves whose old home is not removed yet, the oldest first. */
    async open(): Promise<ReverseJob[]> {
      const rows = await database.$queryRaw<JobRow[]>`
        select id, tenant_id, state, step, attempts, move from operations
        where kind = 'move' and move -> 'reverse' is not null and move -> 'reverse' -> 'removed' is null
        order by created_at, id`
      return rows.flatMap(toJobs).flatMap(toReverses)
    },

    /** Returns the move of a tenant whose old home is not removed yet; undefined if there is none. */
    async ofTenant(tenantId: string): Promise<ReverseJob | undefined> {
      const rows = await database.$queryRaw<JobRow[]>`
        select id, tenant_id, state, step, attempts, move from operations
        where tenant_id = ${tenantId} and kind = 'move'
          and move -> 'reverse' is not null and move -> 'reverse' -> 'removed' is null`
      return rows.flatMap(toJobs).flatMap(toReverses)[0]
    },

    /** Returns the number of moves into a region whose old home is not removed yet. Their slots are on its servers. */
    async count(region: string): Promise<number> {
      return (await this.open()).filter((job) => regionAfter(job) === region).length
    },

    /** Reads what decides whether a reverse continues; undefined if its operation does not exist any more. */
    async facts(job: ReverseJob): Promise<ReverseFacts | undefined> {
      const [rows, reverts, tenant, restores] = await Promise.all([
        database.$queryRaw<(JobRow & { created_at: Date })[]>`
          select id, tenant_id, state, step, attempts, move, created_at from operations where id = ${job.operationId}::uuid`,
        unsettledRevert(job, database),
        database.tenant.findUnique({ where: { id: job.tenantId }, include: { sharedDatabase: true } }),
        database.operation.findMany({
          where: { tenantId: job.tenantId, kind: 'restore' },
          orderBy: { createdAt: 'desc' },
          take: 1,
        }),
      ])
      const [reverse] = rows.flatMap(toJobs).flatMap(toReverses)
      if (reverse === undefined) return undefined
      const [restore, [begun]] = [restores[0], rows]
      return {
        reverse: reverse.reverse,
        tenant: tenant === null ? undefined : { isDeleted: tenant.desired === 'deleted', ...homeLocation(tenant) },
        revert: reverts.flatMap(toJobs)[0],
        isRestored: restore !== undefined && begun !== undefined && restore.createdAt > begun.created_at,
      }
    },

    /**
     * Records that a reverse ends, so that no revert begins any more. @returns false if one is in progress, and nothing was
     * recorded
     */
    end: (job: ReverseJob, ends: string, epoch: bigint): Promise<boolean> =>
      write(job, epoch, async (transaction) => {
        if ((await unsettledRevert(job, transaction)).length > 0) return false
        await merge(transaction, job, { ends })
        return true
      }),

    /** Records that nothing of a reverse is left. */
    removed: (job: ReverseJob, ends: string, epoch: bigint): Promise<void> =>
      write(job, epoch, (transaction) => merge(transaction, job, { ends, removed: true })),
  }
}

function toReverses(job: MoveJob): ReverseJob[] {
  return job.reverse === undefined ? [] : [{ ...job, reverse: job.reverse }]
}
