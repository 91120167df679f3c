// Makes a backup of a tenant that shares its region's database and runtime: its home, the files of its objects, both of one
// snapshot, and a manifest with the figures that a restored home is compared with.
import { completeBackup, type BackupInProgress, type Taken } from '../complete-backup.ts'
import { settledSequences } from '../home-facts.ts'
import type { Manifest } from '../manifest.ts'
import { dumpFrames, readSharedState } from './dump-home.ts'
import { writeFrames } from './dump-frames.ts'
import { inHomeSnapshot } from './home-snapshot.ts'
import type { RuntimeFiles } from './runtime-files.ts'
import type { SharedLocation } from './shared-server.ts'
import { takeRuntimeFiles } from './take-files.ts'

interface TakeShared extends BackupInProgress {
  location: SharedLocation
  runtime: RuntimeFiles
}

/**
 * Makes a backup. Nothing is committed after an error.
 * @throws BackupError
 */
export function takeShared(options: TakeShared, signal: AbortSignal): Promise<Taken> {
  return options.runtime.whileHeld(signal, (held) => take(options, held))
}

async function take(options: TakeShared, signal: AbortSignal): Promise<Taken> {
  const { clock, step } = options
  await step('snapshot')
  const takenAt = clock.now().toISOString()
  const { database, home, version, stored } = await takeHome(options, signal)
  await step('files')
  const { parts, blobs } = await takeRuntimeFiles(stored, options, signal)
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
