// The leader's reads and writes of moves in the control database.
import { Value } from 'typebox/value'
import { recordChange } from '../platform/change-log.ts'
import type { Database, Prisma, Transaction } from '../platform/database.ts'
import { ledWrite } from '../platform/led-write.ts'
import { MovingServices, serviceNames, type Isolation, type OwnIsolation } from '../stacks/index.ts'
import { recordWanted } from '../tenants/index.ts'
import {
  isAtDestination,
  isOwn,
  isWanted,
  MoveColumn,
  regionAfter,
  type FileMove,
  type HomeLocation,
  type Identity,
  type MoveJob,
  type Phase,
  type Progress,
} from './move.ts'
import { MoveError } from './move-error.ts'

const open = ['pending', 'running']

/** A row of a move's operation. */
export interface JobRow {
  id: string
  tenant_id: string
  state: string
  step: string | null
  attempts: number
  move: unknown
}

/** Converts the row of a move's operation; an empty list for another one. */
export function toJobs({ id: operationId, tenant_id: tenantId, state, step, attempts, move }: JobRow): MoveJob[] {
  return Value.Check(MoveColumn, move)
    ? [{ ...move, operationId, tenantId, state, step: step ?? undefined, attempts }]
    : []
}

/** Returns the location of a tenant's home. */
export function homeLocation({
  regionId,
  isolation,
  sharedDatabase,
}: {
  regionId: string
  isolation: string
  sharedDatabase: { name: string } | null
}) {
  // A check constraint limits the column to its values.
  return { regionId, isolation: isolation as Isolation, database: sharedDatabase?.name } satisfies HomeLocation
}

/** Returns the columns of a tenant after a move; undefined if the database does not exist any more. */
async function locationAfter(
  transaction: Transaction,
  move: MoveJob,
): Promise<{ regionId: string; isolation?: Isolation; sharedDatabaseId: string | null } | undefined> {
  const { to: name, toIsolation: isolation } = move
  const regionId = regionAfter(move)
  if (isOwn(isolation)) return { regionId, isolation, sharedDatabaseId: null }
  const found = await transaction.sharedDatabase.findUnique({ where: { regionId_name: { regionId, name } } })
  if (found === null) return undefined
  return { regionId, ...(isolation === undefined ? {} : { isolation }), sharedDatabaseId: found.id }
}

/** Returns the columns of a tenant that has services of this model as well, and is to be served by them. */
function exchangedServices(
  { isolation, postgresImage: postgres, runtimeImage: runtime, movingServices: moving }: ServiceColumns,
  to: string,
) {
  if (!Value.Check(MovingServices, moving) || moving.isolation !== to) return {}
  return {
    postgresImage: moving.images.postgres,
    runtimeImage: moving.images.runtime,
    movingServices: { isolation, images: { postgres, runtime }, isEnding: true },
  }
}

type ServiceColumns = Pick<
  Prisma.TenantGetPayload<object>,
  'isolation' | 'postgresImage' | 'runtimeImage' | 'movingServices'
>

/** The leader's ledger of moves. Every write throws `LeadershipLost` when another control plane leads. */
export type MoveLedger = ReturnType<typeof createMoveLedger>

/** Creates the ledger on the control database. */
export function createMoveLedger(database: Database, now: () => Date) {
  /** Writes in the lock of the tenant. */
  const write = <T>({ tenantId }: MoveJob, epoch: bigint, work: (transaction: Transaction) => Promise<T>) =>
    ledWrite(database, epoch, [`tenant:${tenantId}`], work)

  /** Throws when the move is no longer wanted. */
  const requireWanted = async (transaction: Transaction, { operationId }: MoveJob) => {
    const row = await transaction.operation.findUnique({ where: { id: operationId } })
    if (row === null || !Value.Check(MoveColumn, row.move)) throw new MoveError('The operation was superseded.')
    if (row.move.canceled === true) throw new MoveError('An operator has canceled the move.')
    if (!isWanted({ state: row.state })) throw new MoveError('The operation was superseded.')
  }

  const merge = (transaction: Transaction, { operationId }: MoveJob, part: object) =>
    transaction.$executeRaw`
      update operations set move = move || ${JSON.stringify(part)}::jsonb where id = ${operationId}::uuid`

  const setRoute = (transaction: Transaction, { tenantId }: MoveJob, routePhase: 'ready' | 'paused') =>
    transaction.tenant.updateMany({
      where: { id: tenantId, desired: 'active' },
      data: { routePhase, updatedAt: now() },
    })

  return {
    /** Returns the moves that are not settled, the oldest first, without those that revert another one. */
    async unsettled(): Promise<MoveJob[]> {
      const rows = await database.$queryRaw<JobRow[]>`
        select id, tenant_id, state, step, attempts, move from operations
        where kind = 'move' and not coalesce((move ->> 'settled')::boolean, false) and move -> 'reverts' is null
        order by created_at, id`
      return rows.flatMap(toJobs)
    },

    /** Begins an attempt. @throws MoveError */
    begin: (job: MoveJob, epoch: bigint): Promise<void> =>
      write(job, epoch, async (transaction) => {
        await requireWanted(transaction, job)
        await transaction.operation.update({
          where: { id: job.operationId },
          data: { state: 'running', attempts: { increment: 1 }, startedAt: now(), error: null },
        })
      }),

    /** Records the phase with its progress. @throws MoveError when the move is no longer wanted */
    step: (job: MoveJob, step: Phase, progress: Progress, epoch: bigint): Promise<void> =>
      write(job, epoch, async (transaction) => {
        await requireWanted(transaction, job)
        await transaction.operation.update({ where: { id: job.operationId }, data: { step } })
        await merge(transaction, job, { waits_for: null, ...progress })
        await recordChange(transaction, 'observed', job.tenantId)
      }),

    /** Records how the files get to the destination, before one is copied. */
    recordFiles: (job: MoveJob, files: FileMove, epoch: bigint): Promise<void> =>
      write(job, epoch, async (transaction) => {
        await requireWanted(transaction, job)
        await merge(transaction, job, { files })
      }),

    /** Records which replica identities the move changes, before it does. */
    recordIdentities: (job: MoveJob, identities: readonly Identity[], epoch: bigint): Promise<void> =>
      write(job, epoch, async (transaction) => {
        await requireWanted(transaction, job)
        await merge(transaction, job, { identities })
      }),

    /** Records which replica identities of the new home change for its reverse, before they do. */
    recordNewIdentities: (job: MoveJob, newIdentities: readonly Identity[], epoch: bigint): Promise<void> =>
      write(job, epoch, async (transaction) => {
        await requireWanted(transaction, job)
        await merge(transaction, job, { newIdentities })
      }),

    /** Records the reason for which a move has no reverse; undefined for one that has. */
    recordReverse: (job: MoveJob, notRevertible: string | undefined, epoch: bigint): Promise<void> =>
      write(job, epoch, async (transaction) => {
        await requireWanted(transaction, job)
        await merge(transaction, job, { notRevertible: notRevertible ?? null })
      }),

    /** Lets gateways hold the tenant's requests. @throws MoveError when the move is no longer wanted */
    hold: (job: MoveJob, epoch: bigint): Promise<void> =>
      write(job, epoch, async (transaction) => {
        await requireWanted(transaction, job)
        await transaction.operation.update({ where: { id: job.operationId }, data: { step: 'hold' satisfies Phase } })
        await setRoute(transaction, job, 'paused')
        await recordChange(transaction, 'published', job.tenantId)
      }),

    /** Records that the home is in its new database. The gateways still hold the requests. @returns the generation */
    recordSwitched: (job: MoveJob, epoch: bigint): Promise<number | undefined> =>
      write(job, epoch, async (transaction) => {
        const target = await locationAfter(transaction, job)
        const tenant = await transaction.tenant.findUnique({
          where: { id: job.tenantId },
          include: { sharedDatabase: true },
        })
        if (target === undefined || tenant === null) return undefined
        const { isolation = tenant.isolation } = target
        if (isAtDestination(job, homeLocation(tenant))) return tenant.generation
        await transaction.operation.updateMany({
          where: { id: job.operationId, state: { in: open } },
          data: { state: 'running', step: 'switch' satisfies Phase },
        })
        const generation = tenant.generation + 1
        await transaction.tenant.update({
          where: { id: tenant.id },
          data: { ...target, ...exchangedServices(tenant, isolation), generation, updatedAt: now() },
        })
        await recordChange(transaction, 'published', tenant.id)
        return generation
      }),

    /** Lets gateways forward the requests again. The reconciler observes the tenant once the step is not a held one. */
    release: (job: MoveJob, step: Phase, epoch: bigint): Promise<void> =>
      write(job, epoch, async (transaction) => {
        await setRoute(transaction, job, 'ready')
        await transaction.operation.updateMany({ where: { id: job.operationId, state: { in: open } }, data: { step } })
        await recordChange(transaction, 'published', job.tenantId)
        await recordWanted(transaction, job.tenantId)
      }),

    /**
     * Ends the move, of which nothing is left: with an error, it has failed. A superseded operation stays so.
     * @param revertibleUntil the end of the time for which the old home stays; absent if it does not
     */
    settle: (job: MoveJob, error: string | undefined, epoch: bigint, revertibleUntil?: Date): Promise<void> =>
      write(job, epoch, async (transaction) => {
        const state = error === undefined ? 'succeeded' : 'failed'
        await transaction.operation.updateMany({
          where: { id: job.operationId, state: { in: open } },
          data: { state, finishedAt: now(), error: error ?? null, ...(error === undefined ? { step: 'done' } : {}) },
        })
        const reverse = revertibleUntil === undefined ? {} : { reverse: { until: revertibleUntil.toISOString() } }
        await merge(transaction, job, { settled: true, waits_for: null, ...reverse })
        await recordChange(transaction, 'observed', job.tenantId)
      }),

    /** Whether a backup of the tenant is in progress. */
    async hasBackup(tenantId: string): Promise<boolean> {
      const where = { tenantId, kind: { in: ['backup', 'verify'] }, state: { in: open } }
      return (await database.operation.count({ where })) > 0
    },

    /** Whether the control database has the tenant where the move leads. */
    async isMoved(job: MoveJob): Promise<boolean> {
      const home = await this.homeOf(job.tenantId)
      return home !== undefined && isAtDestination(job, home)
    },

    /** Lets the tenant have services of another model as well. @throws MoveError when the move is no longer wanted */
    addServices: (job: MoveJob, services: MovingServices, epoch: bigint): Promise<void> =>
      write(job, epoch, async (transaction) => {
        await requireWanted(transaction, job)
        await transaction.tenant.update({ where: { id: job.tenantId }, data: { movingServices: services } })
      }),

    /** Records that the services of a model that is not the tenant's own are removed. The reconciler starts none of them again. */
    endServices: (job: MoveJob, isolation: OwnIsolation, epoch: bigint): Promise<void> =>
      write(job, epoch, async (transaction) => {
        await transaction.$executeRaw`
          update tenants set moving_services = moving_services || '{"isEnding": true}'
          where id = ${job.tenantId} and moving_services ->> 'isolation' = ${isolation}`
      }),

    /** Records that they are removed, so that they reserve nothing, and lets the reconciler observe the tenant. */
    dropServices: (job: MoveJob, isolation: OwnIsolation, epoch: bigint): Promise<void> =>
      write(job, epoch, async (transaction) => {
        const count = await transaction.$executeRaw`
          update tenants set moving_services = null
          where id = ${job.tenantId} and moving_services ->> 'isolation' = ${isolation}`
        if (count === 0) return
        const removed = { tenantId: job.tenantId, service: { in: serviceNames(isolation) } }
        await transaction.placement.deleteMany({ where: removed })
        await recordWanted(transaction, job.tenantId)
      }),

    /** Deletes the images and the subnet of services that the tenant does not use, and that are removed. */
    releaseServices: (job: MoveJob, epoch: bigint): Promise<void> =>
      write(job, epoch, async (transaction) => {
        const where = { id: job.tenantId, isolation: 'schema-per-tenant' }
        const { count } = await transaction.tenant.updateMany({
          where,
          data: { postgresImage: null, runtimeImage: null },
        })
        if (count === 0) return
        await transaction.subnet.deleteMany({ where: { stackId: job.tenantId } })
        await transaction.placement.deleteMany({ where: { tenantId: job.tenantId } })
      }),

    /** Returns the location that the control database has for the tenant's home; undefined without a tenant. */
    async homeOf(tenantId: string): Promise<HomeLocation | undefined> {
      const row = await database.tenant.findUnique({ where: { id: tenantId }, include: { sharedDatabase: true } })
      return row === null ? undefined : homeLocation(row)
    },
  }
}
