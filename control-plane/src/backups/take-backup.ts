// Takes a backup of a tenant that runs: the database by pg_dump, the files of its objects as an archive, both of one
// snapshot, and a manifest with the figures that a restored home is compared with.
import type { Clock } from '../clock.ts'
import { EngineError } from '../engines/engine-error.ts'
import { literal } from '../homes/identifiers.ts'
import { BackupError } from './backup-error.ts'
import { indexLine, watchedArchive } from './blob-index.ts'
import { whileHeld } from './collection-hold.ts'
import { factSettings, readFacts } from './home-facts.ts'
import { inFiles, inPostgres, type HomePlace } from './home-place.ts'
import { linesOf } from './lines.ts'
import { formatVersion, manifestHash, type Manifest, type Part } from './manifest.ts'
import type { BackupFiles } from './parts.ts'
import { openPsql } from './psql-session.ts'
import { createTextPipe } from './text-pipe.ts'

export interface Taken {
  bytes: number
  manifestHash: string
}

export interface TakeBackup {
  backupId: string
  tenant: { id: string; name: string }
  place: HomePlace
  files: BackupFiles
  clock: Clock
  /** Told of every step. */
  step: (name: string) => Promise<void>
}

/** @throws BackupError, EngineError; nothing is committed then */
export async function takeBackup(options: TakeBackup, signal: AbortSignal): Promise<Taken> {
  const { place, tenant, clock } = options
  return whileHeld(place, tenant.id, clock, signal, (held) => take(options, held))
}

async function take({ backupId, tenant, place, files, clock, step }: TakeBackup, signal: AbortSignal): Promise<Taken> {
  const session = openPsql(inPostgres(place), place.database, [...factSettings, 'begin isolation level repeatable read, read only'], signal)
  try {
    await step('snapshot')
    const [snapshot = ''] = await session.rows("select pg_export_snapshot() || ' ' || current_setting('server_version')")
    const [name = '', version = ''] = snapshot.split(' ')
    const takenAt = clock.now().toISOString()
    const home = await readFacts(tenant.id, session.rows)
    await step('database')
    const database = await files.write('database', inPostgres(place)(dumpCommand(place.database, tenant.id, name), { signal }))
    await step('files')
    const { parts, blobs } = await takeBlobs(place, tenant.id, name, files, signal)
    const manifest: Manifest = {
      format: formatVersion, backup_id: backupId, tenant_id: tenant.id, tenant_name: tenant.name, taken_at: takenAt, postgres_version: version,
      parts: [database, ...parts], home, blobs,
    }
    const text = JSON.stringify(manifest)
    await files.writeManifest(text)
    await step('commit')
    await files.commit()
    return { bytes: files.bytes(), manifestHash: manifestHash(text) }
  } finally {
    await session.close()
  }
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

function dumpCommand(database: string, schema: string, snapshot: string): string[] {
  return [
    'pg_dump', '-U', 'postgres', '-d', database, '--format=custom', '--compress=zstd:3', `--snapshot=${snapshot}`, `--schema=${schema}`,
    '--strict-names', '--lock-wait-timeout=60s', '--no-password',
  ]
}

/** The files that the snapshot refers to, in the order of their ids; what has been written since is not its. */
async function takeBlobs(place: HomePlace, tenantId: string, snapshot: string, files: BackupFiles, signal: AbortSignal): Promise<{ parts: Part[]; blobs: Manifest['blobs'] }> {
  const failed = new AbortController()
  const either = AbortSignal.any([signal, failed.signal])
  const blobs = { count: 0, bytes: 0 }
  const expected = blobIds(place, tenantId, snapshot, either)
  const index = createTextPipe()
  const archive = inFiles(place)(
    ['tar', '--create', '--directory', place.blobs, '--no-recursion', '--verbatim-files-from', '--files-from', '-', '--owner=0', '--group=0', '--numeric-owner'],
    { input: archiveNames(blobIds(place, tenantId, snapshot, either)), signal: either },
  )
  const watched = watchedArchive(archive, async (blob) => {
    if (blob.id === 'store') return
    const { value: id } = await expected.next()
    if (id !== blob.id) throw new BackupError('INCOMPLETE', `the file ${String(id)} of an object is missing`)
    blobs.count++
    blobs.bytes += blob.size
    await index.write(indexLine(blob))
  })
  const writeFiles = async () => {
    try {
      const part = await files.write('files', watched)
      const { value: missing } = await expected.next()
      if (missing !== undefined) throw new BackupError('INCOMPLETE', `the file ${missing} of an object is missing`)
      index.end()
      return part
    } catch (cause) {
      index.fail(new Error('the archive was not read to its end', { cause }))
      throw isMissingFile(cause) ? new BackupError('INCOMPLETE', 'the file of an object is missing', { cause }) : cause
    } finally {
      await expected.return(undefined)
    }
  }
  const written = await Promise.allSettled([writeFiles(), files.write('index', index.content).catch((cause: unknown) => {
    failed.abort(cause)
    throw cause
  })])
  const parts = written.map((result) => {
    if (result.status === 'rejected') throw result.reason
    return result.value
  })
  return { parts, blobs }
}

/** As tar says it. */
function isMissingFile(cause: unknown): boolean {
  return cause instanceof EngineError && cause.message.includes('Cannot stat')
}

/** Beside the blobs: the mark of the store that belongs to the database. */
async function* archiveNames(ids: AsyncIterable<string>): AsyncGenerator<Uint8Array, undefined> {
  yield Buffer.from('store\n')
  for await (const id of ids) {
    // It stands in a table of the tenant's, who may have made anything of it.
    if (!uuid.test(id)) throw new BackupError('INCOMPLETE', 'an object has no file: what stands for it is no id')
    yield Buffer.from(`${id.slice(0, 2)}/${id}\n`)
  }
}

async function* blobIds(place: HomePlace, tenantId: string, snapshot: string, signal: AbortSignal): AsyncGenerator<string, undefined> {
  const sql = [
    ...factSettings,
    'begin isolation level repeatable read, read only',
    `set transaction snapshot ${literal(snapshot)}`,
    `copy (select blob_id from "${tenantId}".storage_objects order by blob_id) to stdout`,
    'commit;\n',
  ].join(';\n')
  yield* linesOf(inPostgres(place)(['psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-U', 'postgres', '-d', place.database, '-f', '-'], { input: sql, signal }))
}
