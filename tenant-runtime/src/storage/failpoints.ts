// Named points of the storage protocol, at which tests kill the process, throw or hang.

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

/** Runs at a named point, and does nothing unless the point is armed. */
export type StorageFailpoint = (name: StorageFailpointName) => void | Promise<void>

/** Runs a change that is one transaction, with a point before and one after its commit. */
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
 * Parses `name=kill:count,…`. The process is killed when the point is passed for the `count`th time (default 1).
 * @throws Error for an unknown name
 */
export function parseStorageFailpoints(text: string, kill: () => void): StorageFailpoint {
  const armed = new Map<string, number>()
  for (const part of text.split(',').filter((part) => part !== '')) {
    const match = /^([a-z.-]+)=kill(?::(\d+))?$/.exec(part)
    if (match?.[1] === undefined || !storageFailpointNames.some((name) => name === match[1]))
      throw new Error(`Unknown failpoint "${part.slice(0, 100)}".`)
    armed.set(match[1], Number(match[2] ?? 1))
  }
  return (name) => {
    const remaining = armed.get(name)
    if (remaining === undefined) return
    if (remaining === 1) kill()
    armed.set(name, remaining - 1)
  }
}
