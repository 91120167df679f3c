// Puts a backup's home into a place that is nobody's yet, and compares every figure on the way.
import type { BackupFiles } from './parts.ts'
import { structureTable, type HomeMigration } from '../homes/index.ts'
import { compareBlobs, readIndexLine, type BlobEntry } from './blob-index.ts'
import { compareContent, compareObjects, factSettings, readContent, readObjects, type AskRows } from './home-facts.ts'
import { asLogin, asSuperuser, filesScript, inFiles, inPostgres, restoreSection, type HomePlace } from './home-place.ts'
import { linesOf } from './lines.ts'
import type { Manifest } from './manifest.ts'
import type { Login } from './login.ts'
import { openPsql } from './psql-session.ts'
import { readerLogin } from './reader-login.ts'
import { adoptHome, migrateRestored, regrant } from './seal-home.ts'
import {
  emptySchemaSql,
  freshBooksSql,
  prepareDatabaseSql,
  renameSql,
  renumberEventsSql,
  retagSql,
} from './rehome-sql.ts'

interface LoadHome {
  manifest: Manifest
  files: BackupFiles
  /** Its database is there and empty, its directory of blobs is not. */
  place: HomePlace
  /** The ddl login of the backup's tenant. */
  login: Login
  /** Another tenant, on a Postgres of its own; undefined: it stays who it was. */
  newId: string | undefined
  /** Of this version: the restored home is brought to them. */
  migrations: readonly HomeMigration[]
  step: (name: string) => Promise<void>
  /** Told of what pg_restore complained of. */
  onComplaint: (text: string) => void
}

/** @throws BackupError MISMATCH, DAMAGED */
export async function loadHome(options: LoadHome, signal: AbortSignal): Promise<void> {
  const { step } = options
  await step('database')
  await loadDatabase(options, signal)
  await step('files')
  await loadBlobs(options, signal)
  await step('compare')
  await compareFiles(options, signal)
}

async function loadDatabase(
  { manifest, files, place, login, newId, migrations, onComplaint }: LoadHome,
  signal: AbortSignal,
): Promise<void> {
  const { tenant_id: schema, home } = manifest
  await asSuperuser(place, place.database, `${prepareDatabaseSql(place.database)};\n${emptySchemaSql(schema)}`, signal)
  const section = async (name: 'pre-data' | 'data' | 'post-data') => {
    const complaint = await restoreSection(place, login, schema, name, files.read('database'), signal)
    if (complaint !== '') onComplaint(complaint)
  }
  await section('pre-data')
  await section('data')
  await inFactSession(place, signal, async (ask) => compareContent(home, await readContent(schema, ask)))
  await asLogin(place, login, freshBooksSql(schema), signal)
  if (newId !== undefined) {
    await asLogin(place, login, `${retagSql(schema, newId)};\n${renumberEventsSql(schema)}`, signal)
  }
  await section('post-data')
  const compare = () =>
    inFactSession(place, signal, async (ask) => compareObjects(home.objects, await readObjects(schema, ask)))
  // Of a home that was made before the service's tables had a role of their own, all was the owner's.
  const hadSystemRole = home.tables.some(({ name }) => name === structureTable)
  if (!hadSystemRole) await compare()
  await adoptHome(place, schema, migrations, signal)
  if (hadSystemRole) {
    await regrant(place, schema, signal)
    await compare()
  }
  if (newId !== undefined)
    await asSuperuser(place, place.database, `begin;\n${renameSql(schema, newId)};\ncommit`, signal)
  const id = newId ?? schema
  await migrateRestored(place, { homeId: id, tenantId: id }, migrations, signal)
}

async function inFactSession(
  place: HomePlace,
  signal: AbortSignal,
  work: (ask: AskRows) => Promise<void>,
): Promise<void> {
  const session = openPsql(inPostgres(place), place.database, await readerLogin(place, signal), factSettings, signal)
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

async function loadBlobs({ files, place }: LoadHome, signal: AbortSignal): Promise<void> {
  await filesScript(place, extraction, [place.blobs], { input: files.read('files'), signal })
}

async function compareFiles({ files, place }: LoadHome, signal: AbortSignal): Promise<void> {
  const script = 'cd "$1"; find . -mindepth 2 -type f -print0 | LC_ALL=C sort -z | xargs -0 -r sha256sum'
  const sums = inFiles(place)(['bash', '-euo', 'pipefail', '-c', script, 'bash', place.blobs], { signal })
  await compareBlobs(wantedBlobs(files), foundBlobs(sums))
}

export async function* wantedBlobs(files: BackupFiles): AsyncGenerator<BlobEntry, undefined> {
  for await (const line of linesOf(files.read('index'))) yield readIndexLine(line)
}

/** As `sha256sum` prints them. */
async function* foundBlobs(
  sums: AsyncIterable<Uint8Array>,
): AsyncGenerator<Pick<BlobEntry, 'id' | 'sha256'>, undefined> {
  for await (const line of linesOf(sums)) {
    const [sha256 = '', path = ''] = line.split('  ')
    yield { id: path.split('/').at(-1) ?? '', sha256 }
  }
}

export type Load = Omit<Parameters<typeof loadHome>[0], 'place' | 'login' | 'newId'>
