// Loads a backup's home into a new location that no tenant uses yet, and compares every figure.
import type { BackupFiles } from './parts.ts'
import { structureTable, type HomeMigration } from '../homes/index.ts'
import { compareBlobs, wantedBlobs, type BlobEntry } from './blob-index.ts'
import { compareContent, compareObjects, factSettings, readContent, readObjects, type QueryRows } from './home-facts.ts'
import {
  asLogin,
  asSuperuser,
  filesScript,
  inFiles,
  inPostgres,
  restoreSection,
  type HomeLocation,
} from './home-location.ts'
import { linesOf } from './lines.ts'
import type { Manifest } from './manifest.ts'
import type { Login } from './login.ts'
import { openPsql } from './psql-session.ts'
import { readerLogin } from './reader-login.ts'
import { adoptHome, migrateRestored, regrant } from './seal-home.ts'
import { containerServer } from './shared/container-server.ts'
import { agreeOnStore, writeFiles } from './shared/write-files.ts'
import {
  emptySchemaSql,
  freshCountersSql,
  prepareDatabaseSql,
  renameSql,
  renumberEventsSql,
  retagSql,
} from './rehome-sql.ts'

interface LoadHome {
  manifest: Manifest
  files: BackupFiles
  /** The new location. Its database exists and is empty, its directory of blobs does not exist. */
  location: HomeLocation
  /** The ddl login of the backup's tenant. */
  login: Login
  /** The id of another tenant, which has a Postgres of its own; undefined when the tenant stays the same. */
  newId: string | undefined
  /** The home migrations of this version, which are applied to the restored home. */
  migrations: readonly HomeMigration[]
  step: (name: string) => Promise<void>
  /** Receives the error output of pg_restore. */
  onComplaint: (text: string) => void
}

/**
 * Loads a home.
 * @throws BackupError MISMATCH, DAMAGED
 */
export async function loadHome(options: LoadHome, signal: AbortSignal): Promise<void> {
  await options.step('database')
  await loadDatabase(options, signal)
  await loadFilesInto(options.newId ?? options.manifest.tenant_id, options, signal)
}

/**
 * Loads the database of a home.
 * @throws BackupError MISMATCH, DAMAGED
 */
export async function loadDatabase(
  { manifest, files, location, login, newId, migrations, onComplaint }: LoadHome,
  signal: AbortSignal,
): Promise<void> {
  const { tenant_id: schema, home, row_hash: rowHash = 'md5' } = manifest
  await asSuperuser(
    location,
    location.database,
    `${prepareDatabaseSql(location.database)};\n${emptySchemaSql(schema)}`,
    signal,
  )
  const section = async (name: 'pre-data' | 'data' | 'post-data') => {
    const complaint = await restoreSection(location, login, schema, name, files.read('database'), signal)
    if (complaint !== '') onComplaint(complaint)
  }
  await section('pre-data')
  await section('data')
  await inFactSession(location, signal, async (query) =>
    compareContent(home, await readContent(schema, query, rowHash)),
  )
  await asLogin(location, login, freshCountersSql(schema), signal)
  if (newId !== undefined) {
    await asLogin(location, login, `${retagSql(schema, newId)};\n${renumberEventsSql(schema)}`, signal)
  }
  await section('post-data')
  const compare = () =>
    inFactSession(location, signal, async (query) => compareObjects(home.objects, await readObjects(schema, query)))
  // In homes from before the system role, the owner owned the service's tables too.
  const hadSystemRole = home.tables.some(({ name }) => name === structureTable)
  if (!hadSystemRole) await compare()
  await adoptHome(location, schema, migrations, signal)
  if (hadSystemRole) {
    await regrant(location, schema, signal)
    await compare()
  }
  if (newId !== undefined)
    await asSuperuser(location, location.database, `begin;\n${renameSql(schema, newId)};\ncommit`, signal)
  const id = newId ?? schema
  await migrateRestored(location, { homeId: id, tenantId: id }, migrations, signal)
}

async function inFactSession(
  location: HomeLocation,
  signal: AbortSignal,
  work: (query: QueryRows) => Promise<void>,
): Promise<void> {
  const session = openPsql(
    inPostgres(location),
    location.database,
    await readerLogin(location, signal),
    factSettings,
    signal,
  )
  try {
    await work(session.rows)
  } finally {
    await session.close()
  }
}

const extraction = `
umask 077
mkdir -p "$1"
tar --extract --directory "$1" --no-same-owner --no-same-permissions --touch
sync --file-system "$1"
`

type LoadFiles = Pick<LoadHome, 'files' | 'location' | 'step'>

/**
 * Loads the files of a home whose database is loaded.
 * @param schema the home's
 * @throws BackupError MISMATCH, DAMAGED
 */
export async function loadFilesInto(schema: string, options: LoadFiles, signal: AbortSignal): Promise<void> {
  const { step, location } = options
  await step('files')
  if (location.bucket !== undefined) {
    await agreeOnStore(containerServer(location), schema, location.bucket, signal)
    await writeFiles(options, location.bucket, signal)
    return
  }
  await loadBlobs(options, signal)
  await step('compare')
  await compareFiles(options, signal)
}

async function loadBlobs({ files, location }: LoadFiles, signal: AbortSignal): Promise<void> {
  await filesScript(location, extraction, [location.blobs], { input: files.read('files'), signal })
}

async function compareFiles({ files, location }: LoadFiles, signal: AbortSignal): Promise<void> {
  const script = 'cd "$1"; find . -mindepth 2 -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum'
  const sums = inFiles(location)(['bash', '-euo', 'pipefail', '-c', script, 'bash', location.blobs], { signal })
  await compareBlobs(wantedBlobs(files), foundBlobs(sums))
}

/** Yields blobs from the output of `sha256sum`. */
async function* foundBlobs(
  sums: AsyncIterable<Uint8Array>,
): AsyncGenerator<Pick<BlobEntry, 'id' | 'sha256'>, undefined> {
  for await (const line of linesOf(sums)) {
    const [sha256 = '', path = ''] = line.split('  ')
    yield { id: path.split('/').at(-1) ?? '', sha256 }
  }
}

export type Load = Omit<Parameters<typeof loadHome>[0], 'location' | 'login' | 'newId'>
