// fsync of a directory.
import { open } from 'node:fs/promises'

/** Resolves when the names that the directory has now (files made, renamed or removed in it) survive a power cut. */
export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
