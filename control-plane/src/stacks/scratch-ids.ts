// Names of stacks that a backup is verified in.

const scratchPrefix = 's_'

/** Of an operation: its stack is found again by whoever carries on. */
export function scratchId(operationId: string): string {
  return `${scratchPrefix}${operationId.replaceAll('-', '').slice(0, 20)}`
}

export function isScratchId(stackId: string): boolean {
  return stackId.startsWith(scratchPrefix)
}
