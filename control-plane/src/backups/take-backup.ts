// Makes a backup of a running tenant: a pg_dump of the database, an archive of the objects' files, both of one
// snapshot, and a manifest with the figures that a restored home is compared with.
import { EngineError } from '../engines/index.ts'
import { violationsSql, damaged, homeRoles } from '../homes/index.ts'
import { identifier, literal } from '../platform/identifiers.ts'
import { paced } from '../platform/pace.ts'
import { isUuid } from '../platform/uuid.ts'
import { BackupError, isTargetFailure } from './backup-error.ts'
import { indexLine, watchedArchive } from './blob-index.ts'
import { whileHeld } from './collection-hold.ts'
import { completeBackup, type BackupInProgress, type Taken } from './complete-backup.ts'
import { factSettings, readFacts, readSequences, settledSequences, type QueryRows } from './home-facts.ts'
import { inFiles, inPostgres, type HomeLocation } from './home-location.ts'
import { linesOf } from './lines.ts'
import { loggedIn, type Login } from './login.ts'
import type { Manifest, Part } from './manifest.ts'
import { openPsql } from './psql-session.ts'
import { readerLogin } from './reader-login.ts'
import type { StoredFile } from './shared/pack-files.ts'
import { takeRuntimeFiles } from './shared/take-files.ts'
import { createTextPipe } from './text-pipe.ts'

const rowHash = 'hashtext'
/** Estimated bytes of rows for each byte of a compressed dump. */
const compression = 1.5

/** A backup that is being made of a tenant with a database of its own. */
export interface TakeBackup extends BackupInProgress {
  location: HomeLocation
  /** The moment of the home's content; absent: now. */
  takenAt?: Date
}

/**
 * Makes a backup. Nothing is committed after an error.
 * @throws BackupError, EngineError
 */
export async function takeBackup(options: TakeBackup, signal: AbortSignal): Promise<Taken> {
  const { location, tenant, clock } = options
  // Each file is read, so that one which a runtime without a hold has removed is noticed.
  const mustHoldAll = location.bucket === undefined
  return whileHeld(location, tenant.id, clock, signal, (held) => take(options, held), mustHoldAll)
}

async function take(options: TakeBackup, signal: AbortSignal): Promise<Taken> {
  const { tenant, location, files, clock, step } = options
  const reader = await readerLogin(location, signal)
  const session = openPsql(
    inPostgres(location),
    location.database,
    reader,
    [...factSettings, 'begin isolation level repeatable read, read only'],
    signal,
  )
  try {
    await step('snapshot')
    await rejectDamaged(tenant.id, session.rows)
    const [snapshot = ''] = await session.rows(
      "select pg_export_snapshot() || ' ' || current_setting('server_version')",
    )
    const [name = '', version = ''] = snapshot.split(' ')
    const takenAt = (options.takenAt ?? clock.now()).toISOString()
    const facts = await readFacts(tenant.id, session.rows, rowHash)
    await step('database')
    const database = await files.write(
      'database',
      paced(
        inPostgres(location)(loggedIn(reader, dumpCommand(location.database, tenant.id, name)), {
          input: `${reader.password}\n`,
          signal,
        }),
        options.pace,
        compression,
      ),
    )
    const home = {
      ...facts,
      sequences: settledSequences(facts.sequences, await readSequences(tenant.id, session.rows)),
    }
    await step('files')
    const takeFiles = await openFiles(options, reader, name, session.rows, signal)
    // Its locks would block changes of the tenant's tables while the files are archived.
    await session.close()
    const { parts, blobs } = await takeFiles()
    return await completeBackup(options, {
      row_hash: rowHash,
      taken_at: takenAt,
      postgres_version: version,
      parts: [database, ...parts],
      home,
      blobs,
    })
  } finally {
    await session.close()
  }
}

/**
 * Rejects a home without a table of the service, which could not be restored as it was.
 * @throws BackupError HOME_DAMAGED
 */
async function rejectDamaged(tenantId: string, query: QueryRows): Promise<void> {
  const errors =
    (await query(hasCheck(tenantId))).length === 0
      ? ['the function "home_problems" is missing']
      : await query(violationsSql(tenantId))
  if (errors.length > 0) throw new BackupError('HOME_DAMAGED', damaged(errors).message)
}

/** Returns a query for the check function. A function of that name that is not the service's own must not run. */
function hasCheck(tenantId: string): string {
  return (
    `select 1 from pg_proc where pronamespace = ${literal(identifier(tenantId))}::regnamespace` +
    ` and proname = 'home_problems' and pronargs = 0` +
    ` and pg_get_userbyid(proowner) = ${literal(homeRoles(tenantId).system)}`
  )
}

function dumpCommand(database: string, schema: string, snapshot: string): string[] {
  return [
    'pg_dump',
    '-d',
    database,
    '--format=custom',
    '--compress=zstd:1',
    `--snapshot=${snapshot}`,
    `--schema=${schema}`,
    '--strict-names',
    '--lock-wait-timeout=60s',
    '--no-password',
  ]
}

interface TakenFiles {
  parts: Part[]
  blobs: Manifest['blobs']
}

/**
 * Reads which files the snapshot refers to.
 * @param query queries of the session that has the snapshot
 * @returns a function that archives them, also after the session has ended
 */
async function openFiles(
  options: TakeBackup,
  reader: Login,
  snapshot: string,
  query: QueryRows,
  signal: AbortSignal,
): Promise<() => Promise<TakenFiles>> {
  const { location, tenant } = options
  const { bucket } = location
  if (bucket !== undefined) {
    const stored = await query(
      `select blob_id || ' ' || size from ${identifier(tenant.id)}.storage_objects order by blob_id`,
    )
    return () => takeRuntimeFiles(stored.map(storedFile), { ...options, runtime: bucket }, signal)
  }
  const lists = [
    await openBlobIds(location, reader, tenant.id, snapshot, signal),
    await openBlobIds(location, reader, tenant.id, snapshot, signal),
  ] as const
  return () => takeBlobs(location, lists, options, signal)
}

/** Reads a row of `blob_id` and `size`, which is from a table of the tenant and may contain anything. @throws BackupError INCOMPLETE */
function storedFile(row: string): StoredFile {
  const [id = '', size = ''] = row.split(' ')
  if (!isUuid(id) || !/^\d+$/.test(size))
    throw new BackupError('INCOMPLETE', 'An object has no file: its row is invalid.')
  return { id, size: Number(size) }
}

/**
 * Archives the files that the snapshot refers to, in the order of their ids. Files that were written since are not
 * included.
 * @param lists two lists of their ids: one for the archive, the other to compare its files with
 */
async function takeBlobs(
  location: HomeLocation,
  [names, expected]: readonly [BlobIds, BlobIds],
  { files, pace }: Pick<TakeBackup, 'files' | 'pace'>,
  signal: AbortSignal,
): Promise<TakenFiles> {
  const failed = new AbortController()
  const either = AbortSignal.any([signal, failed.signal])
  const blobs = { count: 0, bytes: 0 }
  const index = createTextPipe()
  const archive = inFiles(location)(
    [
      'tar',
      '--create',
      // Each write is a frame of the Engine: as large as a pipe.
      '--blocking-factor=128',
      '--directory',
      location.blobs,
      '--no-recursion',
      '--verbatim-files-from',
      '--files-from',
      '-',
      '--owner=0',
      '--group=0',
      '--numeric-owner',
    ],
    { input: archiveNames(names), signal: either },
  )
  const watched = watchedArchive(paced(archive, pace), async (blob) => {
    if (blob.id === 'store') return
    const { value: id } = await expected.next()
    if (id !== blob.id) throw new BackupError('INCOMPLETE', `The file ${String(id)} of an object is missing.`)
    blobs.count++
    blobs.bytes += blob.size
    await index.write(indexLine(blob))
  })
  const writeFiles = async () => {
    try {
      const part = await files.write('files', watched)
      const { value: missing } = await expected.next()
      if (missing !== undefined) throw new BackupError('INCOMPLETE', `The file ${missing} of an object is missing.`)
      index.end()
      return part
    } catch (cause) {
      index.fail(new Error('The archive was not read to its end.', { cause }))
      throw isMissingFile(cause) ? new BackupError('INCOMPLETE', 'The file of an object is missing.', { cause }) : cause
    } finally {
      await expected.return(undefined)
    }
  }
  const written = await Promise.allSettled([
    writeFiles(),
    files.write('index', index.content).catch((cause: unknown) => {
      failed.abort(cause)
      throw cause
    }),
  ])
  // The archive ends with an error of its own when the index could not be written.
  if (isTargetFailure(failed.signal.reason)) throw failed.signal.reason
  const parts = written.map((result) => {
    if (result.status === 'rejected') throw result.reason
    return result.value
  })
  return { parts, blobs }
}

/** Whether tar reported a missing file. */
function isMissingFile(cause: unknown): boolean {
  return cause instanceof EngineError && cause.message.includes('Cannot stat')
}

/** Yields the names of the archive's files: the blobs, and the store ID, which belongs to the database. */
async function* archiveNames(ids: AsyncIterable<string>): AsyncGenerator<Uint8Array, undefined> {
  yield Buffer.from('store\n')
  for await (const id of ids) {
    // The id is from a table of the tenant, which may contain anything.
    if (!isUuid(id)) throw new BackupError('INCOMPLETE', 'An object has no file: its blob id is invalid.')
    yield Buffer.from(`${id.slice(0, 2)}/${id}\n`)
  }
}

type BlobIds = AsyncGenerator<string, undefined>

/** Lists blob ids. The list has the snapshot when this returns, even if the session that exported it ends. */
async function openBlobIds(
  location: HomeLocation,
  reader: Login,
  tenantId: string,
  snapshot: string,
  signal: AbortSignal,
): Promise<BlobIds> {
  const sql = [
    ...factSettings,
    'begin isolation level repeatable read, read only',
    `set transaction snapshot ${literal(snapshot)}`,
    "select 'begun'",
    `copy (select blob_id from "${tenantId}".storage_objects order by blob_id) to stdout`,
    'commit;\n',
  ].join(';\n')
  const lines = linesOf(
    inPostgres(location)(
      loggedIn(reader, ['psql', '-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-d', location.database, '-f', '-']),
      { input: `${reader.password}\n${sql}`, signal },
    ),
  )
  await lines.next()
  return lines
}
