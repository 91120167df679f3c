// Makes a backup of a tenant that shares its region's database and runtime: its home, the files of its objects, both of one
// snapshot, and a manifest with the figures that a restored home is compared with.
import { pack } from 'tar-stream'
import { isTargetFailure } from '../backup-error.ts'
import { indexLine, type BlobEntry } from '../blob-index.ts'
import { completeBackup, type BackupInProgress, type Taken } from '../complete-backup.ts'
import { settledSequences } from '../home-facts.ts'
import type { Manifest, Part } from '../manifest.ts'
import { createTextPipe } from '../text-pipe.ts'
import { dumpFrames, readSharedState } from './dump-home.ts'
import { writeFrames } from './dump-frames.ts'
import { inHomeSnapshot } from './home-snapshot.ts'
import { packFiles, type StoredFile } from './pack-files.ts'
import type { RuntimeFiles } from './runtime-files.ts'
import type { SharedLocation } from './shared-server.ts'

interface TakeShared extends BackupInProgress {
  location: SharedLocation
  runtime: RuntimeFiles
}

const maxCopiedBytes = 4_096

/**
 * Makes a backup. Nothing is committed after an error.
 * @throws BackupError
 */
export function takeShared(options: TakeShared, signal: AbortSignal): Promise<Taken> {
  return options.runtime.whileHeld(signal, (held) => take(options, held))
}

async function take(options: TakeShared, signal: AbortSignal): Promise<Taken> {
  const { clock, step, runtime } = options
  await step('snapshot')
  const takenAt = clock.now().toISOString()
  const { database, home, version, stored } = await takeHome(options, signal)
  await step('files')
  const { parts, blobs } = await takeFiles(stored, await runtime.storeId(signal), options, signal)
  return completeBackup(options, {
    database_format: 'frames-2',
    taken_at: takenAt,
    postgres_version: version,
    parts: [database, ...parts],
    home,
    blobs,
  })
}

/** Dumps the home. Its session ends before the files are read, because its locks block changes of the tenant's tables. */
async function takeHome({ tenant, location, files, step, pace }: TakeShared, signal: AbortSignal) {
  return inHomeSnapshot(location, tenant.id, signal, async ({ client, header, objects, version }) => {
    const before = await readSharedState(client, objects)
    await step('database')
    const content: Manifest['home']['tables'] = []
    const database = await files.write('database', writeFrames(dumpFrames(client, header, objects, { content, pace })))
    const after = await readSharedState(client, objects)
    const { rows: stored } = await client.query<{ id: string; size: string }>(
      `select blob_id::pg_catalog.text as id, size::pg_catalog.text as size from storage_objects order by blob_id`,
    )
    return {
      database,
      home: { ...before, tables: content, sequences: settledSequences(before.sequences, after.sequences) },
      version,
      stored: stored.map((file) => ({ id: file.id, size: Number(file.size) })),
    }
  })
}

/** Archives the files in the order of their ids, in the form of a dedicated tenant's. */
async function takeFiles(
  stored: readonly StoredFile[],
  storeId: string | undefined,
  { files, runtime, pace }: TakeShared,
  signal: AbortSignal,
): Promise<{ parts: Part[]; blobs: Manifest['blobs'] }> {
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
