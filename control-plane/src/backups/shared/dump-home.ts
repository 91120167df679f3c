// Dumps one home of a shared database as frames, from one snapshot, and reads the figures with which a restored home is
// compared.
import { createHash } from 'node:crypto'
import type pg from 'pg'
import { identifier } from '../../platform/identifiers.ts'
import { paced, type Pace } from '../../platform/pace.ts'
import { BackupError } from '../backup-error.ts'
import { hashSumSql, readingSettings } from '../home-facts.ts'
import type { HomeFacts, Manifest } from '../manifest.ts'
import { releaseMemory } from '../release-memory.ts'
import { copyOut, maxRowBytes } from './copy-out.ts'
import type { DumpEntry, DumpHeader, DumpSequence, DumpTable } from './dump-entry.ts'
import { jsonFrame, rowFrames, type Frame } from './dump-frames.ts'
import type { HomeObjects } from './read-objects.ts'
import { RowHash } from './row-hash.ts'

/** Statements that begin a session which reads the home in a schema. */
export const readSettings = (schema: string): string[] => [
  `set search_path = ${identifier(schema)}`,
  ...readingSettings,
  'set default_transaction_read_only = on',
]

const namesOf = ({ columns }: Pick<DumpTable, 'columns'>) => columns.map(identifier).join(', ')

/** Locks the tables against changes of their structure until the end of the transaction. */
export async function lockTables(client: pg.Client, { tables }: HomeObjects): Promise<void> {
  if (tables.length === 0) return
  await client.query(`lock table ${tables.map(({ name }) => identifier(name)).join(', ')} in access share mode`)
}

interface DumpOptions {
  /** Receives the figures of each table when its rows have passed. */
  content?: HomeFacts['tables']
  /** The pace of the rows. */
  pace?: Pace
}

/** Yields the dump. */
export async function* dumpFrames(
  client: pg.Client,
  header: DumpHeader,
  { entries, tables, sequences }: HomeObjects,
  { content, pace }: DumpOptions = {},
): AsyncGenerator<Frame, undefined> {
  yield jsonFrame('H', header)
  for (const entry of entries) if (entry.phase === 'before') yield jsonFrame('E', entry)
  for (const table of tables) {
    yield jsonFrame('T', table)
    const hash = content === undefined ? undefined : new RowHash()
    for await (const rows of paced(copyOut(client, table), pace)) {
      hash?.update(rows)
      yield* rowFrames(rows)
    }
    if (hash !== undefined) content?.push({ name: table.name, ...hash.digest() })
  }
  yield jsonFrame('S', await readPositions(client, sequences))
  for (const entry of entries) if (entry.phase !== 'before') yield jsonFrame('E', entry)
  yield jsonFrame('Z', {})
}

async function readPositions(client: pg.Client, sequences: HomeObjects['sequences']): Promise<DumpSequence[]> {
  const positions: DumpSequence[] = []
  for (const { name, isService } of sequences) {
    const { rows } = await client.query<{ value: string; isCalled: boolean }>(
      `select last_value::pg_catalog.text as value, is_called as "isCalled" from ${identifier(name)}`,
    )
    const [position] = rows
    if (position !== undefined) positions.push({ name, isService, ...position })
  }
  return positions
}

type ReadContent = (
  client: pg.Client,
  table: Pick<DumpTable, 'name' | 'columns'>,
  pace: Pace | undefined,
) => Promise<{ rows: string; hash: string }>

/** Functions that read the figures of a table, by the form of the backup. */
const readContent: Record<NonNullable<Manifest['database_format']>, ReadContent> = {
  frames: contentOf,
  async 'frames-2'(client, table, pace) {
    const hash = new RowHash()
    for await (const rows of paced(copyOut(client, table), pace)) {
      hash.update(rows)
      releaseMemory(rows)
    }
    return hash.digest()
  },
}

/** Reads the figures of a home by which a backup of this form is compared. A pace applies to the form `frames-2` only. */
export async function readSharedFacts(
  client: pg.Client,
  objects: HomeObjects,
  format: NonNullable<Manifest['database_format']>,
  pace?: Pace,
): Promise<HomeFacts> {
  const tables: HomeFacts['tables'] = []
  for (const table of objects.tables)
    tables.push({ name: table.name, ...(await readContent[format](client, table, pace)) })
  return { tables, ...(await readSharedState(client, objects)) }
}

/** Reads the figures of everything but the rows. */
export async function readSharedState(
  client: pg.Client,
  { entries, sequences }: HomeObjects,
): Promise<Omit<HomeFacts, 'tables'>> {
  return {
    sequences: (await readPositions(client, sequences)).map(({ name, value, isCalled }) => ({
      name,
      last_value: value,
      is_called: isCalled,
    })),
    objects: objectCounts(entries),
  }
}

/**
 * The sum of the rows' hashes does not depend on their order. The ID of the tenant in rows of the platform is not included.
 * @throws BackupError for a row that is too large
 */
export async function contentOf(
  client: pg.Client,
  table: Pick<DumpTable, 'name' | 'columns'>,
): Promise<{ rows: string; hash: string }> {
  const { rows: found } = await client.query<{ rows: string; hash: string; widest: number }>(
    `select pg_catalog.count(*)::pg_catalog.text as rows, ${hashSumSql} as hash,` +
      ` coalesce(pg_catalog.max(bytes), 0) as widest` +
      ` from (select pg_catalog.md5(line) as h, pg_catalog.octet_length(line) as bytes` +
      ` from (select pg_catalog.format('%s', row(${namesOf(table)})) as line` +
      ` from only ${identifier(table.name)} offset 0) as lines) as hashed`,
  )
  const { rows = '', hash = '', widest = 0 } = found[0] ?? {}
  if (widest > maxRowBytes)
    throw new BackupError('FAILED', `A row of the table "${table.name}" has ${widest} bytes. Allowed: ${maxRowBytes}.`)
  return { rows, hash }
}

function objectCounts(entries: readonly DumpEntry[]): HomeFacts['objects'] {
  const kinds = new Map<string, string[]>()
  for (const { kind, identity } of entries) kinds.set(kind, [...(kinds.get(kind) ?? []), identity])
  return [...kinds]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([kind, identities]) => ({
      kind,
      count: identities.length,
      sha256: createHash('sha256').update(identities.sort().join('\n')).digest('hex'),
    }))
}
