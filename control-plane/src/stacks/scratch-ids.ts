// Names of stacks that a backup is verified in.

const scratchPrefix = 's_'

/** Id of the stack in which an operation works on a backup: the same for each attempt, so that the next one finds it again. */
export function scratchId(operationId: string): string {
  return `${scratchPrefix}${operationId.replaceAll('-', '').slice(0, 20)}`
}

/** Whether a stack is one in which a backup is verified, rather than a tenant's or a region's. */
export function isScratchId(stackId: string): boolean {
  return stackId.startsWith(scratchPrefix)
}
