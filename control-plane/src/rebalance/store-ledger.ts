// The leader's reads and writes of rebalances, and of the sizes of shared databases, in the control database.
import { appendToChain, type AuditNote } from '../platform/audit-chain.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { ControlError } from '../platform/errors.ts'
import { ledWrite } from '../platform/led-write.ts'
import type { Lock } from '../platform/locks.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import { placementOf, type HostCapacity } from '../placement/index.ts'
import type { TenantStore } from '../tenants/index.ts'
import { isSpreadWorse } from './plan-host-moves.ts'
import type { Rebalance, RebalanceMove } from './rebalance.ts'
import { openStates, readDatabases, toRebalance, withMoves, type StoredDatabase } from './store-rows.ts'

/** The author of the moves in the audit log. */
const actor = 'rebalance'

/** The leader's ledger of rebalances. Every write throws `LeadershipLost` when another control plane leads. */
export type RebalanceLedger = ReturnType<typeof createRebalanceLedger>

/** A move that is not possible any more. Its message is public. */
class MoveRejected extends Error {}

/** Creates the ledger on the control database. */
export function createRebalanceLedger(
  database: Database,
  tenants: Pick<TenantStore, 'move' | 'moveService' | 'switchOver'>,
  now: () => Date,
) {
  const setMove = (
    { id, region }: Rebalance,
    { position }: RebalanceMove,
    data: { state: RebalanceMove['state']; error?: string },
    epoch: bigint,
  ) =>
    ledWrite(database, epoch, [`rebalance:${region}`], (transaction) =>
      transaction.rebalanceMove.update({ where: { rebalanceId_position: { rebalanceId: id, position } }, data }),
    )

  /**
   * Begins a move, in one transaction with its operation. A tenant that cannot be moved any more is skipped; one with
   * another operation in progress is tried again.
   * @returns whether the move is in progress
   */
  const begin = async (
    rebalance: Rebalance,
    move: RebalanceMove,
    epoch: bigint,
    locks: readonly Lock[],
    request: (write: RecordedWrite) => Promise<{ operation: { id: string } }>,
  ): Promise<boolean> => {
    try {
      return await ledWrite(
        database,
        epoch,
        [`rebalance:${rebalance.region}`, `tenant:${move.tenantId}`, ...locks],
        async (transaction) => {
          const { count } = await transaction.rebalance.updateMany({
            where: { id: rebalance.id, state: 'running' },
            data: { state: 'running' },
          })
          // An operator has canceled the rebalance.
          if (count === 0) return false
          const notes: AuditNote[] = []
          const audit = (note: AuditNote) => void notes.push(note)
          const { operation } = await request({ transaction, audit })
          await transaction.rebalanceMove.update({
            where: { rebalanceId_position: { rebalanceId: rebalance.id, position: move.position } },
            data: { state: 'moving', operationId: operation.id },
          })
          await appendToChain(transaction, actor, notes, now)
          return true
        },
      )
    } catch (cause) {
      if (!(cause instanceof ControlError || cause instanceof MoveRejected)) throw cause
      if (cause instanceof ControlError && cause.code === 'OPERATION_IN_PROGRESS') return false
      await setMove(rebalance, move, { state: 'skipped', error: cause.message }, epoch)
      return false
    }
  }

  return {
    /** Returns the rebalances that have not ended. */
    async open(): Promise<Rebalance[]> {
      const where = { state: { in: openStates } }
      return (await database.rebalance.findMany({ where, include: withMoves })).map(toRebalance)
    },

    /** Records the ends of the moves in progress. */
    async settle(rebalance: Rebalance, epoch: bigint): Promise<void> {
      for (const move of rebalance.moves.filter(({ state }) => state === 'moving')) {
        const operation = await database.operation.findUnique({ where: { id: move.operationId ?? '' } })
        if (operation?.state === 'pending' || operation?.state === 'running') continue
        const end =
          operation?.state !== 'succeeded'
            ? ({ state: 'failed', error: operation?.error ?? 'The move was superseded.' } as const)
            : (await isThere(database, move))
              ? ({ state: 'moved' } as const)
              : ({ state: 'failed', error: 'The service has got another host in the meantime.' } as const)
        await setMove(rebalance, move, end, epoch)
      }
    },

    /** Begins the move of a home, as `begin` does. */
    beginHome: (rebalance: Rebalance, move: RebalanceMove, epoch: bigint): Promise<boolean> =>
      begin(rebalance, move, epoch, [`homes:${rebalance.region}`], (write) =>
        tenants.move(move.tenantId, move.to, write, {
          isReversible: false,
          from: { region: rebalance.region, database: move.from },
        }),
      ),

    /**
     * Begins the move of a service, as `begin` does: records its new host, if that still receives services, has the memory, and does not
     * make the spread of the tenant worse.
     * @param hosts the hosts that respond, with the memory that is not reserved
     */
    beginService: (
      rebalance: Rebalance,
      move: RebalanceMove,
      hosts: readonly HostCapacity[],
      epoch: bigint,
    ): Promise<boolean> =>
      begin(rebalance, move, epoch, [], async (write) => {
        const { tenantId, service = '', from, to } = move
        await rejectInactive(write.transaction, rebalance.region, to)
        const { placement, reserved } = placementOf(await write.transaction.placement.findMany({ where: { tenantId } }))
        const target = hosts.find(({ id }) => id === to)
        if (target === undefined) throw new MoveRejected(`The host "${to}" does not respond.`)
        if (target.freeBytes < (reserved[service] ?? 0))
          throw new MoveRejected(`The host "${to}" does not have enough memory that is not reserved.`)
        if (isSpreadWorse(placement, { service, to }, hosts))
          throw new MoveRejected(`The services of the tenant would be on fewer hosts or zones.`)
        return tenants.moveService(tenantId, { service, from, to }, write)
      }),

    /** Begins a switchover, as `begin` does, if the member that becomes the primary is on its host. */
    beginSwitchover: (rebalance: Rebalance, move: RebalanceMove, epoch: bigint): Promise<boolean> =>
      begin(rebalance, move, epoch, [], async (write) => {
        const { tenantId, service = '', targetService = '', to } = move
        await rejectInactive(write.transaction, rebalance.region, to)
        const where = { tenantId, service: targetService, hostId: to }
        if ((await write.transaction.placement.count({ where })) === 0)
          throw new MoveRejected(`The service ${targetService} is not on the host "${to}" any more.`)
        return tenants.switchOver(tenantId, { from: service, to: targetService }, write)
      }),

    /** Records that a move is not possible any more. */
    skip: (rebalance: Rebalance, move: RebalanceMove, error: string, epoch: bigint): Promise<unknown> =>
      setMove(rebalance, move, { state: 'skipped', error }, epoch),

    /** Ends a rebalance without moves in progress. The moves that have not begun are skipped. */
    finish: ({ id, region }: Rebalance, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [`rebalance:${region}`], async (transaction) => {
        const { state } = await transaction.rebalance.findUniqueOrThrow({ where: { id } })
        await transaction.rebalanceMove.updateMany({
          where: { rebalanceId: id, state: 'waiting' },
          data: { state: 'skipped', error: 'An operator has canceled the rebalance.' },
        })
        await transaction.rebalance.update({
          where: { id },
          data: { state: state === 'canceling' ? 'canceled' : 'done', finishedAt: now() },
        })
      }),

    /** Returns the region's shared databases. */
    databases: (region: string): Promise<StoredDatabase[]> => readDatabases(database, region),

    /** Records the size of a database. */
    measured: (region: string, name: string, bytes: number, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [], async (transaction) => {
        await transaction.sharedDatabase.update({
          where: { regionId_name: { regionId: region, name } },
          data: { bytes, measuredAt: now() },
        })
      }),
  }
}

/** Whether a service that has moved is on its new host. Its tenant was observed as specified. */
async function isThere(database: Database, { kind, tenantId, service = '', to }: RebalanceMove): Promise<boolean> {
  if (kind !== 'service') return true
  return (await database.placement.count({ where: { tenantId, service, hostId: to } })) > 0
}

/** Rejects a host that is drained or lost. @throws MoveRejected */
async function rejectInactive(transaction: Transaction, regionId: string, hostId: string): Promise<void> {
  if ((await transaction.hostState.count({ where: { regionId, hostId } })) > 0)
    throw new MoveRejected(`The host "${hostId}" receives no services any more.`)
}
