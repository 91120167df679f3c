// Converts a stored operation to the one that a reconciliation carries out.
import { toDriftRepair, toSwitchover } from '../tenants/index.ts'
import type { Snapshot } from './reconcile-store.ts'

type OpenOperation = { id: string; attempts: number; switchover: unknown; repair: unknown }

/** Returns the operation of a row, with what only its kind has. */
export function toOpenOperation({ id, attempts, ...row }: OpenOperation): Snapshot['operation'] {
  const [switchover, repair] = [toSwitchover(row.switchover), toDriftRepair(row.repair)]
  return { id, attempts, ...(switchover && { switchover }), ...(repair && { repair }) }
}
