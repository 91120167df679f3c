// Writes the files of a backup to a store that only runtimes know.
import { identifier, literal } from '../../platform/identifiers.ts'
import { BackupError } from '../backup-error.ts'
import { wantedBlobs } from '../blob-index.ts'
import type { BackupFiles } from '../parts.ts'
import { eachFile } from './restored-files.ts'
import type { RuntimeFiles } from './runtime-files.ts'
import { asAdmin, type SharedLocation } from './shared-server.ts'

/** Makes the home and the runtime's store agree on the store's ID. */
export async function agreeOnStore(
  location: SharedLocation,
  schema: string,
  runtime: RuntimeFiles,
  signal: AbortSignal,
): Promise<void> {
  const space = identifier(schema)
  await asAdmin(location, signal, async (client) => {
    const { rows } = await client.query<{ id: string }>(`select store_id::text as id from ${space}.storage_usage`)
    const wanted = rows[0]?.id ?? ''
    const found = await runtime.claimStore(wanted, signal)
    if (found === wanted) return
    await client.query(
      `set session_replication_role = replica; update ${space}.storage_usage set store_id = ${literal(found)};` +
        ` update ${space}.home_structure set definition = ${literal(found)} where kind = 'store'`,
    )
  })
}

/**
 * Writes the files that the runtime lacks, and compares all. Those that the home in use does not refer to are removed later, by its sweep.
 * @throws BackupError MISMATCH
 */
export async function writeFiles(
  { files }: { files: BackupFiles },
  runtime: RuntimeFiles,
  signal: AbortSignal,
): Promise<void> {
  // The runtime has most files of a tenant that is restored in place, and the archive need not be read then.
  const lacking = await firstLacking(files, runtime, signal)
  if (lacking === undefined) return
  let number = 0
  await eachFile(files, async (blob, content) => {
    signal.throwIfAborted()
    if (number++ < lacking) return
    if (await runtime.has(blob, signal)) return
    const written = await runtime.write(blob.id, content, signal)
    if (written.size !== blob.size || written.sha256 !== blob.sha256)
      throw new BackupError('MISMATCH', `The content of the file ${blob.id} differs.`)
  })
}

/** Returns the number of the first file that the runtime lacks, counted from 0; undefined if it has all of them. */
async function firstLacking(
  files: BackupFiles,
  runtime: RuntimeFiles,
  signal: AbortSignal,
): Promise<number | undefined> {
  let number = 0
  for await (const blob of wantedBlobs(files)) {
    signal.throwIfAborted()
    if (!(await runtime.has(blob, signal))) return number
    number++
  }
  return undefined
}
