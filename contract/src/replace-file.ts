// Replaces a file atomically.
import { open, rename } from 'node:fs/promises'

interface ReplaceFileOptions {
  /** The file's permissions; by default, only its owner may read it. */
  mode?: number
  /** Called with the path of the new file before it replaces the old one. */
  beforeRename?: (next: string) => Promise<void>
}

/**
 * Replaces a file by a text or its parts, so that readers, also after a crash of the process, see the old content or the new
 * one.
 */
export async function replaceFile(
  file: string,
  text: string | Iterable<string>,
  { mode = 0o600, beforeRename }: ReplaceFileOptions = {},
): Promise<void> {
  const next = `${file}.next`
  const handle = await open(next, 'w', mode)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await beforeRename?.(next)
  await rename(next, file)
}
