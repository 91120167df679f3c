// The files of a backup, as its archive contains them, compared with its index.
import { Readable } from 'node:stream'
import { extract } from 'tar-stream'
import { BackupError } from '../backup-error.ts'
import { wantedBlobs, type BlobEntry } from '../blob-index.ts'
import type { BackupFiles } from '../parts.ts'

/**
 * Calls `use` with each file of the archive, in order. What it does not read of a file is skipped.
 * @throws BackupError MISMATCH when archive and index differ
 */
export async function eachFile(
  files: BackupFiles,
  use: (blob: BlobEntry, content: AsyncIterable<Uint8Array>) => Promise<void>,
): Promise<void> {
  const wanted = wantedBlobs(files)
  const source = Readable.from(files.read('files'), { objectMode: false })
  const reader = extract()
  source.on('error', (cause) => reader.destroy(cause))
  try {
    for await (const entry of source.pipe(reader)) {
      if (entry.header.name !== 'store') {
        const { value: blob } = await wanted.next()
        if (blob === undefined || entry.header.name !== `${blob.id.slice(0, 2)}/${blob.id}`)
          throw new BackupError(
            'MISMATCH',
            `The archive of files and its index differ at "${entry.header.name.slice(0, 100)}".`,
          )
        await use(blob, entry as unknown as AsyncIterable<Uint8Array>)
      }
      entry.resume()
    }
    const { value: missing } = await wanted.next()
    if (missing !== undefined) throw new BackupError('MISMATCH', `The file ${missing.id} is missing.`)
  } finally {
    source.destroy()
    await wanted.return(undefined)
  }
}
