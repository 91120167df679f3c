// Packs files of a tenant on a shared runtime into an archive, in the form in which a tenant's own runtime stores them.
import { createHash } from 'node:crypto'
import type { Pack } from 'tar-stream'
import { paced, type Pace } from '../../platform/pace.ts'
import { BackupError } from '../backup-error.ts'
import type { BlobEntry } from '../blob-index.ts'
import type { RuntimeFiles } from './runtime-files.ts'

/** A file to which an object of a home refers. */
export interface StoredFile {
  id: string
  /** Bytes. */
  size: number
}

interface PackFiles {
  runtime: Pick<RuntimeFiles, 'open'>
  /** The ID of the tenant's store; undefined if the archive is to have none. */
  storeId: string | undefined
  pace?: Pace | undefined
  /** Called after each file. */
  onFile: (blob: BlobEntry) => void | Promise<void>
}

/**
 * Adds files to an archive, which the caller ends.
 * @throws BackupError INCOMPLETE for a file that the runtime does not have
 */
export async function packFiles(
  archive: Pack,
  stored: readonly StoredFile[],
  { storeId, runtime, pace, onFile }: PackFiles,
  signal: AbortSignal,
): Promise<void> {
  if (storeId !== undefined) archive.entry({ name: 'store' }, storeId)
  for (const { id, size } of stored) {
    signal.throwIfAborted()
    const content = await runtime.open(id, size, signal)
    if (content === undefined) throw new BackupError('INCOMPLETE', `The file ${id} of an object is missing.`)
    const entry = archive.entry({ name: `${id.slice(0, 2)}/${id}`, size })
    const hash = createHash('sha256')
    const ended = new Promise<undefined>((resolve, reject) => {
      entry.on('finish', () => resolve(undefined))
      entry.on('error', reject)
      signal.addEventListener('abort', () => reject(new Error('The archive was interrupted.')), { once: true })
    })
    ended.catch(() => undefined)
    for await (const chunk of paced(content, pace)) {
      hash.update(chunk)
      if (!entry.write(chunk)) await Promise.race([drained(entry), ended])
    }
    entry.end(undefined)
    await ended
    await onFile({ id, size, sha256: hash.digest('hex') })
  }
}

function drained(entry: ReturnType<Pack['entry']>): Promise<undefined> {
  return new Promise((resolve) => {
    entry.once('drain', () => resolve(undefined))
  })
}
