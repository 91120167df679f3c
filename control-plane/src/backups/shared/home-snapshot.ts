// Reads one home of a shared server in one snapshot.
import type pg from 'pg'
import { appliedVersionSql, damaged, violationsSql } from '../../homes/index.ts'
import { literal } from '../../platform/identifiers.ts'
import { BackupError } from '../backup-error.ts'
import type { DumpHeader } from './dump-entry.ts'
import { lockTables } from './dump-home.ts'
import { readHomeObjects, type HomeObjects } from './read-objects.ts'
import { asReader, type SharedLocation } from './shared-server.ts'

/** A home as it is in one snapshot. */
export interface HomeSnapshot {
  /** The session, in the transaction of the snapshot. */
  client: pg.Client
  header: DumpHeader
  objects: HomeObjects
  /** The version of Postgres. */
  version: string
}

interface SnapshotOptions {
  /** The login that reads; by default that of backups. */
  reader?: string
  /** The name of an exported snapshot; by default, a new one. */
  exported?: string
}

/**
 * Calls `use` with a snapshot of a home. Its tables are locked against changes of their structure meanwhile.
 * @throws BackupError HOME_DAMAGED; FAILED for an object that the form of shared homes cannot contain
 */
export async function inHomeSnapshot<T>(
  location: SharedLocation,
  homeId: string,
  signal: AbortSignal,
  use: (snapshot: HomeSnapshot) => Promise<T>,
  { reader, exported }: SnapshotOptions = {},
): Promise<T> {
  const work = async (client: pg.Client) => {
    await client.query('begin isolation level repeatable read, read only')
    if (exported !== undefined) await client.query(`set transaction snapshot ${literal(exported)}`)
    const { rows: problems } = await client.query<{ problem: string }>(violationsSql(homeId))
    if (problems.length > 0)
      throw new BackupError('HOME_DAMAGED', damaged(problems.map(({ problem }) => problem)).message)
    const applied = await client.query<{ version: number }>(appliedVersionSql(homeId))
    const server = await client.query<{ version: string }>(
      "select pg_catalog.current_setting('server_version') as version",
    )
    const objects = await readHomeObjects(client, homeId, homeId)
    await lockTables(client, objects)
    const header = { version: 1 as const, homeVersion: applied.rows[0]?.version ?? 0 }
    const result = await use({ client, header, objects, version: server.rows[0]?.version ?? '' })
    await client.query('commit')
    return result
  }
  return asReader(location, homeId, homeId, signal, work, reader)
}
