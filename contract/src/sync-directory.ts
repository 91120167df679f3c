// Calls fsync of a directory.
import { open } from 'node:fs/promises'

/** Resolves when the directory's current entries (created, renamed or removed files) survive a power failure. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
