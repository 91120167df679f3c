// Archives the files of a tenant that its runtimes store in a way only they know, in the form of a volume's.
import { pack } from 'tar-stream'
import type { Pace } from '../../platform/pace.ts'
import { isTargetFailure } from '../backup-error.ts'
import { indexLine, type BlobEntry } from '../blob-index.ts'
import type { Manifest, Part } from '../manifest.ts'
import type { BackupFiles } from '../parts.ts'
import { createTextPipe } from '../text-pipe.ts'
import { packFiles, type StoredFile } from './pack-files.ts'
import type { RuntimeFiles } from './runtime-files.ts'

interface TakeFiles {
  files: BackupFiles
  runtime: RuntimeFiles
  pace: Pace
}

const maxCopiedBytes = 4_096

/**
 * Archives the files in the order of their ids, with the ID of their store.
 * @throws BackupError INCOMPLETE for a file that the runtime does not have
 */
export async function takeRuntimeFiles(
  stored: readonly StoredFile[],
  { files, runtime, pace }: TakeFiles,
  signal: AbortSignal,
): Promise<{ parts: Part[]; blobs: Manifest['blobs'] }> {
  const storeId = await runtime.storeId(signal)
  const failed = new AbortController()
  const either = AbortSignal.any([signal, failed.signal])
  const index = createTextPipe()
  const archive = pack()
  // The error is reported where the archive is written.
  archive.on('error', () => undefined)
  const onFile = (blob: BlobEntry) => index.write(indexLine(blob))
  const filling = packFiles(archive, stored, { storeId, runtime, pace, onFile }, either).then(
    () => {
      archive.finalize()
      index.end()
    },
    (cause: unknown) => {
      archive.destroy(cause instanceof Error ? cause : new Error('The archive failed.'))
      index.fail(new Error('The archive was not read to its end.', { cause }))
      throw cause
    },
  )
  const written = await Promise.allSettled([
    filling,
    ...(['files', 'index'] as const).map((name) =>
      files
        .write(name, name === 'files' ? ownChunks(archive as unknown as AsyncIterable<Uint8Array>) : index.content)
        .catch((cause: unknown) => {
          failed.abort(cause)
          archive.destroy()
          throw cause
        }),
    ),
  ])
  // The filling ends with an error of its own when a write has failed.
  if (isTargetFailure(failed.signal.reason)) throw failed.signal.reason
  const parts = written.flatMap((result) => {
    if (result.status === 'rejected') throw result.reason
    return result.value ?? []
  })
  return { parts, blobs: { count: stored.length, bytes: stored.reduce((sum, { size }) => sum + size, 0) } }
}

/** Copies small chunks, some of which are constants of the library. The memory of those that are written is freed. */
async function* ownChunks(archive: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, undefined> {
  for await (const chunk of archive) yield chunk.length <= maxCopiedBytes ? Buffer.from(chunk) : chunk
}
