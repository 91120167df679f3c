// Named points of storage's protocol, where tests kill, throw or hang.

export const storageFailpointNames = [
  'upload.before-intent',
  'upload.after-intent',
  'upload.after-write',
  'upload.before-commit',
  'upload.after-commit',
  'write.before-rename',
  'write.after-rename',
  'copy.before-upload',
  'delete.before-commit',
  'delete.after-commit',
  'delete-many.before-commit',
  'delete-many.after-commit',
  'move.before-commit',
  'move.after-commit',
  'empty.before-commit',
  'empty.after-commit',
  'bucket-delete.before-commit',
  'bucket-delete.after-commit',
  'collect.before-unlink',
  'collect.after-unlink',
] as const
type StorageFailpointName = (typeof storageFailpointNames)[number]

/** Called at a boundary; does nothing unless it is armed. */
export type StorageFailpoint = (name: StorageFailpointName) => void | Promise<void>

/** A change that is one transaction, between its two points. */
export async function atCommit<T>(
  failpoint: StorageFailpoint,
  change: 'delete' | 'delete-many' | 'move' | 'empty' | 'bucket-delete',
  commit: () => Promise<T>,
): Promise<T> {
  await failpoint(`${change}.before-commit`)
  const result = await commit()
  await failpoint(`${change}.after-commit`)
  return result
}

/**
 * Reads `name=kill:count,…`: at the `count`th pass (default 1) of the point the process is killed.
 * @throws Error for an unknown name
 */
export function parseStorageFailpoints(text: string, kill: () => void): StorageFailpoint {
  const armed = new Map<string, number>()
  for (const part of text.split(',').filter((part) => part !== '')) {
    const match = /^([a-z.-]+)=kill(?::(\d+))?$/.exec(part)
    if (match?.[1] === undefined || !storageFailpointNames.some((name) => name === match[1]))
      throw new Error(`unknown failpoint: ${part}`)
    armed.set(match[1], Number(match[2] ?? 1))
  }
  return (name) => {
    const left = armed.get(name)
    if (left === undefined) return
    if (left === 1) kill()
    armed.set(name, left - 1)
  }
}
