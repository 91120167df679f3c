// Dumps the control database: all rows from one snapshot, encrypted with a key that the master key determines. Secrets in the
// rows are sealed with the master key already.
import type pg from 'pg'
import { identifier } from '../../platform/identifiers.ts'
import { hrefOf, type PostgresUrl } from '../../platform/superuser-url.ts'
import { readingSettings } from '../home-facts.ts'
import { copyOut } from '../shared/copy-out.ts'
import { jsonFrame, rowFrames, writeFrames, type Frame } from '../shared/dump-frames.ts'
import { contentOf } from '../shared/dump-home.ts'
import { asAdmin } from '../shared/shared-server.ts'
import type { DumpFiles } from './dump-files.ts'
import type { DumpManifest } from './dump-manifest.ts'

interface TakeDump {
  /** The superuser's URL of the control database. */
  url: PostgresUrl
  dumpId: string
  installation: string
  takenAt: Date
  files: DumpFiles
}

/**
 * The tables whose rows are not dumped: the record of migrations, which the manifest contains, and changes of the last
 * minutes, which name transactions of their own server.
 */
const omitted = ['_prisma_migrations', 'changes']

/** Writes a dump and commits it. @throws BackupError */
export async function takeDump(
  { url, dumpId, installation, takenAt, files }: TakeDump,
  signal: AbortSignal,
): Promise<DumpManifest> {
  return inControlDatabase(url, signal, async (client) => {
    await client.query('begin isolation level repeatable read read only')
    const found = await tablesOf(client)
    const tables: DumpManifest['tables'] = []
    for (const table of found) tables.push({ ...table, ...(await contentOf(client, table)) })
    const { rows: migrations } = await client.query<{ name: string }>(
      'select migration_name as name from _prisma_migrations where finished_at is not null order by migration_name',
    )
    const sequences = await positionsOf(client)
    const written = await files.write('rows', writeFrames(rowsOf(client, found)))
    const manifest: DumpManifest = {
      format: 1,
      dump_id: dumpId,
      installation,
      taken_at: takenAt.toISOString(),
      migrations: migrations.map(({ name }) => name),
      tables,
      sequences,
      ...written,
    }
    await files.write('manifest', once(JSON.stringify(manifest)))
    await files.commit()
    return manifest
  })
}

/** Works in a session of the control database whose texts of values are the same everywhere. */
export function inControlDatabase<T>(
  url: PostgresUrl,
  signal: AbortSignal,
  work: (client: pg.Client) => Promise<T>,
): Promise<T> {
  const database = decodeURIComponent(new URL(hrefOf(url)).pathname.slice(1))
  return asAdmin({ postgresUrl: url, database }, signal, async (client) => {
    for (const setting of ['set search_path = public', ...readingSettings]) await client.query(setting)
    return work(client)
  })
}

interface DumpedTable {
  name: string
  columns: string[]
}

async function* rowsOf(client: pg.Client, tables: readonly DumpedTable[]): AsyncGenerator<Frame, undefined> {
  for (const table of tables) {
    yield jsonFrame('T', table)
    for await (const rows of copyOut(client, table)) yield* rowFrames(rows)
  }
  yield jsonFrame('Z', {})
}

/** Returns the tables with their stored columns. Generated columns are computed again. */
async function tablesOf(client: pg.Client): Promise<DumpedTable[]> {
  const { rows } = await client.query<DumpedTable>(
    `select c.relname as name, array_agg(a.attname::text order by a.attnum) as columns
     from pg_class c join pg_attribute a on a.attrelid = c.oid
     where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and a.attnum > 0 and not a.attisdropped
       and a.attgenerated = '' and c.relname <> all ($1)
     group by 1 order by 1`,
    [omitted],
  )
  return rows
}

/**
 * Reads the positions of sequences, which no snapshot includes. They only advance, so a position that is read after the
 * snapshot is not below that of any row.
 */
async function positionsOf(client: pg.Client): Promise<DumpManifest['sequences']> {
  const { rows: names } = await client.query<{ name: string }>(
    `select sequencename as name from pg_sequences where schemaname = 'public' order by 1`,
  )
  const positions: DumpManifest['sequences'] = []
  for (const { name } of names) {
    const { rows } = await client.query<{ value: string; isCalled: boolean }>(
      `select last_value::text as value, is_called as "isCalled" from ${identifier(name)}`,
    )
    if (rows[0] !== undefined) positions.push({ name, ...rows[0] })
  }
  return positions
}

async function* once(text: string): AsyncGenerator<Uint8Array, undefined> {
  yield Buffer.from(text)
}
