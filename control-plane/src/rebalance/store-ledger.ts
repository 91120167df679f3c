// The leader's reads and writes of rebalances, and of the sizes of shared databases, in the control database.
import { appendToChain, type AuditNote } from '../platform/audit-chain.ts'
import type { Database } from '../platform/database.ts'
import { ControlError } from '../platform/errors.ts'
import { ledWrite } from '../platform/led-write.ts'
import type { TenantStore } from '../tenants/index.ts'
import type { Rebalance, RebalanceMove } from './rebalance.ts'
import { openStates, readDatabases, toRebalance, withMoves, type StoredDatabase } from './store-rows.ts'

/** The author of the moves in the audit log. */
const actor = 'rebalance'

/** The leader's ledger of rebalances. Every write throws `LeadershipLost` when another control plane leads. */
export type RebalanceLedger = ReturnType<typeof createRebalanceLedger>

/** Creates the ledger on the control database. */
export function createRebalanceLedger(database: Database, tenants: Pick<TenantStore, 'move'>, now: () => Date) {
  const setMove = (
    { id, region }: Rebalance,
    { position }: RebalanceMove,
    data: { state: RebalanceMove['state']; error?: string },
    epoch: bigint,
  ) =>
    ledWrite(database, epoch, [`rebalance:${region}`], (transaction) =>
      transaction.rebalanceMove.update({ where: { rebalanceId_position: { rebalanceId: id, position } }, data }),
    )

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
          operation?.state === 'succeeded'
            ? ({ state: 'moved' } as const)
            : ({ state: 'failed', error: operation?.error ?? 'The move was superseded.' } as const)
        await setMove(rebalance, move, end, epoch)
      }
    },

    /**
     * Begins a move, in one transaction with its operation. A tenant that cannot be moved any more is skipped; one with
     * another operation in progress is tried again.
     * @returns whether the move is in progress
     */
    async begin(rebalance: Rebalance, move: RebalanceMove, epoch: bigint): Promise<boolean> {
      try {
        return await ledWrite(
          database,
          epoch,
          [`rebalance:${rebalance.region}`, `homes:${rebalance.region}`, `tenant:${move.tenantId}`],
          async (transaction) => {
            const { count } = await transaction.rebalance.updateMany({
              where: { id: rebalance.id, state: 'running' },
              data: { state: 'running' },
            })
            // An operator has canceled the rebalance.
            if (count === 0) return false
            const notes: AuditNote[] = []
            const audit = (note: AuditNote) => void notes.push(note)
            const { operation } = await tenants.move(
              move.tenantId,
              move.to,
              { transaction, audit },
              { isReversible: false, from: { region: rebalance.region, database: move.from } },
            )
            await transaction.rebalanceMove.update({
              where: { rebalanceId_position: { rebalanceId: rebalance.id, position: move.position } },
              data: { state: 'moving', operationId: operation.id },
            })
            await appendToChain(transaction, actor, notes, now)
            return true
          },
        )
      } catch (cause) {
        if (!(cause instanceof ControlError)) throw cause
        if (cause.code !== 'OPERATION_IN_PROGRESS')
          await setMove(rebalance, move, { state: 'skipped', error: cause.message }, epoch)
        return false
      }
    },

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
