// Single files of the local backend: made, looked at and removed durably, and what the errors of its disk mean.
import { randomUUID } from 'node:crypto'
import { open, readFile, stat, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { RuntimeError } from '../../errors.ts'

/**
 * Checks that a store can be written, synced and read back.
 * @param directory on the store's disk, for a file that is there meanwhile
 * @throws Error when it can't
 */
export async function probeDirectory(directory: string, store: string): Promise<void> {
  const file = join(directory, `probe-${randomUUID()}`)
  const text = randomUUID()
  try {
    await writeDurably(file, text)
    if ((await readFile(file, 'utf8')) !== text) throw new Error(`${store} gave back other bytes than were written`)
  } finally {
    await unlink(file).catch(() => undefined)
  }
}

export async function readStoreId(file: string): Promise<string | undefined> {
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch (cause) {
    if (isMissing(cause)) return undefined
    throw storageError(cause)
  }
}

/** Looks at a file: its age in milliseconds and its size in bytes; undefined for what is gone. */
export async function poll(file: string): Promise<{ age: number; size: number } | undefined> {
  const seen = await stat(file).catch(() => undefined)
  return seen === undefined ? undefined : { age: Date.now() - seen.mtimeMs, size: seen.size }
}

/** Removes a file; one that is absent is no error. */
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

export function storageError(cause: unknown): unknown {
  if (!(cause instanceof Error) || !('code' in cause)) return cause
  if (cause.code === 'ENOSPC' || cause.code === 'EDQUOT')
    return new RuntimeError('STORAGE_FULL', 'the storage has no room left', { cause })
  if (cause.code === 'EIO' || cause.code === 'EROFS' || cause.code === 'EMFILE' || cause.code === 'ENFILE') {
    return new RuntimeError('STORAGE_UNAVAILABLE', 'the storage can not be written now', { cause })
  }
  if (isMissing(cause)) return new RuntimeError('STORAGE_UNAVAILABLE', 'the place of the files is gone', { cause })
  return cause
}
