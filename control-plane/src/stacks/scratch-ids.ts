// IDs of stacks in which a backup is verified.

const scratchPrefix = 's_'

/**
 * Returns the ID of the stack in which an operation verifies a backup. Each attempt has the same one, so that the next
 * one finds it.
 */
export function scratchId(operationId: string): string {
  return `${scratchPrefix}${operationId.replaceAll('-', '').slice(0, 20)}`
}

/** Whether a stack is one in which a backup is verified, rather than a tenant's or a region's. */
export function isScratchId(stackId: string): boolean {
  return stackId.startsWith(scratchPrefix)
}
