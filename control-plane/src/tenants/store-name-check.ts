// Rejects names of tenants that are in use.
import { brokenConstraint, type Transaction } from '../platform/database.ts'
import { ControlError } from '../platform/errors.ts'

/**
 * Rejects a name that is in use. Two tenants that exchange their names would otherwise wait for each other at the
 * unique index.
 */
export async function rejectTaken(transaction: Transaction, id: string, name: string): Promise<void> {
  const holder = await transaction.tenant.findFirst({ where: { name, id: { not: id } }, select: { id: true } })
  if (holder !== null) throw nameTaken(name)
}

/** Runs a write that may set a name which another tenant has. @throws ControlError NAME_TAKEN */
export async function withNameCheck<T>(name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (cause) {
    if (brokenConstraint(cause) === 'tenants_name_key') {
      throw nameTaken(name, cause)
    }
    throw cause
  }
}

function nameTaken(name: string, cause?: unknown): ControlError {
  return new ControlError('NAME_TAKEN', `The name "${name}" is taken.`, { cause })
}
