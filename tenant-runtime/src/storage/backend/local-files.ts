// Single files of the local backend: writes them durably, reads their state, removes them, and maps the errors of the disk.
import { randomUUID } from 'node:crypto'
import { open, readFile, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { RuntimeError } from '../../errors.ts'

/**
 * Checks that a store can be written, synced and read back.
 * @param directory a directory on the store's disk, for a temporary file
 * @throws Error if it can't
 */
export async function probeDirectory(directory: string, store: string): Promise<void> {
  const file = join(directory, `probe-${randomUUID()}`)
  const text = randomUUID()
  try {
    await writeDurably(file, text)
    if ((await readFile(file, 'utf8')) !== text) throw new Error(`${store} returned other bytes than were written.`)
  } finally {
    await unlink(file).catch(() => undefined)
  }
}

/** Reads a store's ID. @returns undefined if the file does not exist */
export async function readStoreId(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch (cause) {
    if (isMissing(cause)) return undefined
    throw storageError(cause)
  }
}

/** Returns a file's age in milliseconds and its size in bytes; undefined if it does not exist. */
export async function readFileState(file: string): Promise<{ age: number; size: number } | undefined> {
  const stats = await stat(file).catch(() => undefined)
  return stats === undefined ? undefined : { age: Date.now() - stats.mtimeMs, size: stats.size }
}

/** Removes a file. A missing file is not an error. */
export async function removeFile(file: string): Promise<void> {
  await unlink(file).catch((cause: unknown) => {
    if (!isMissing(cause)) throw storageError(cause)
  })
}

/** Writes a new file and syncs it. */
export async function writeDurably(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

export function isMissing(cause: unknown): boolean {
  return hasCode(cause, 'ENOENT')
}

export function hasCode(cause: unknown, code: string): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === code
}

/** Maps an error of the disk to a `RuntimeError`; returns other errors as they are. */
export function storageError(cause: unknown): unknown {
  if (!(cause instanceof Error) || !('code' in cause)) return cause
  if (cause.code === 'ENOSPC' || cause.code === 'EDQUOT')
    return new RuntimeError('STORAGE_FULL', 'The storage has no room left.', { cause })
  if (cause.code === 'EIO' || cause.code === 'EROFS' || cause.code === 'EMFILE' || cause.code === 'ENFILE') {
    return new RuntimeError('STORAGE_UNAVAILABLE', 'The storage can not be written now.', { cause })
  }
  if (isMissing(cause))
    return new RuntimeError('STORAGE_UNAVAILABLE', 'The directory of the files is missing.', { cause })
  return cause
}
