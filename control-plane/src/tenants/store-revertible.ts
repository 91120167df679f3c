// Finds the move of a tenant that can be reverted.
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { Transaction } from '../platform/database.ts'
import { ControlError } from '../platform/errors.ts'
import { isolationModels } from '../stacks/index.ts'
import type { MoveRequest } from './store-raise.ts'

const Move = Type.Object({
  region: Type.String(),
  toRegion: Type.Optional(Type.String()),
  files: Type.Optional(Type.Enum(['stay', 'copied'])),
  from: Type.String(),
  to: Type.String(),
  fromIsolation: Type.Optional(Type.Enum(isolationModels)),
  toIsolation: Type.Optional(Type.Enum(isolationModels)),
  reverse: Type.Object({ until: Type.String(), ends: Type.Optional(Type.String()) }),
})

/**
 * Returns the move that reverts the tenant's last one. @throws ControlError NO_MOVE_TO_REVERT, NOT_ACTIVE
 */
export async function moveToRevert(
  transaction: Transaction,
  { id, desired, status }: { id: string; desired: string; status: string },
  now: Date,
): Promise<MoveRequest> {
  const [last] = await transaction.$queryRaw<{ id: string; move: unknown }[]>`
    select id, move from operations where tenant_id = ${id} and kind = 'move' and move -> 'reverse' is not null
    order by created_at desc, id limit 1`
  if (last === undefined || !Value.Check(Move, last.move))
    throw new ControlError('NO_MOVE_TO_REVERT', 'The tenant has no move that can be reverted.')
  const { region, toRegion, files, from, to, fromIsolation, toIsolation, reverse } = last.move
  if (reverse.ends !== undefined)
    throw new ControlError('NO_MOVE_TO_REVERT', `The last move cannot be reverted any more. ${reverse.ends}`)
  if (now.toISOString() >= reverse.until)
    throw new ControlError('NO_MOVE_TO_REVERT', `The last move could be reverted until ${reverse.until}.`)
  if (desired !== 'active' || status !== 'ready')
    throw new ControlError('NOT_ACTIVE', `Only a move of a ready tenant can be reverted. This one is ${status}.`)
  const models = fromIsolation && toIsolation && { fromIsolation: toIsolation, toIsolation: fromIsolation }
  const regions = toRegion === undefined ? { region } : { region: toRegion, toRegion: region }
  return { ...regions, from: to, to: from, ...models, ...(files && { files }), reverts: last.id }
}
