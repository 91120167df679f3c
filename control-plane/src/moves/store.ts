// The API's write of moves in the control database.
import { Value } from 'typebox/value'
import { recordChange } from '../platform/change-log.ts'
import { ControlError } from '../platform/errors.ts'
import { lock } from '../platform/locks.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import { type Operation, toOperation } from '../tenants/index.ts'
import { MoveColumn } from './move.ts'

/**
 * Cancels a move that has not switched yet. The leader removes what the move has created, and ends the operation.
 * @throws ControlError OPERATION_NOT_FOUND, NOT_CANCELABLE
 */
export async function cancelMove(id: string, { transaction, audit }: RecordedWrite): Promise<Operation> {
  const found = await transaction.operation.findUnique({ where: { id } })
  if (found === null) throw new ControlError('OPERATION_NOT_FOUND', 'There is no such operation.')
  await lock(transaction, `tenant:${found.tenantId}`)
  const row = await transaction.operation.findUniqueOrThrow({ where: { id } })
  if (row.kind !== 'move' || !Value.Check(MoveColumn, row.move))
    throw new ControlError('NOT_CANCELABLE', `Only a move can be canceled. This operation is of the kind ${row.kind}.`)
  if (row.state !== 'pending' && row.state !== 'running')
    throw new ControlError('NOT_CANCELABLE', `Only a move in progress can be canceled. This one has ${row.state}.`)
  if (row.step === 'switch' || row.step === 'done')
    throw new ControlError('NOT_CANCELABLE', 'The move has switched to the new database already.')
  const move = { ...(row.move as object), canceled: true }
  // Nothing else writes the column without the lock of the tenant.
  const canceled = await transaction.operation.update({ where: { id }, data: { move } })
  await recordChange(transaction, 'observed', row.tenantId)
  audit({ action: 'tenant.cancel_move', target: row.tenantId, detail: { operation_id: id } })
  return toOperation(canceled)
}
