// Reads one home of a shared server in one snapshot.
import type pg from 'pg'
import { appliedVersionSql, damaged, violationsSql } from '../../homes/index.ts'
import { BackupError } from '../backup-error.ts'
import type { DumpHeader } from './dump-entry.ts'
import { lockTables } from './dump-home.ts'
import { readHomeObjects, type HomeObjects } from './read-objects.ts'
import { asReader, type SharedLocation } from './shared-server.ts'

export interface HomeSnapshot {
  /** The session, in the transaction of the snapshot. */
  client: pg.Client
  header: DumpHeader
  objects: HomeObjects
  /** The version of Postgres. */
  version: string
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
): Promise<T> {
  return asReader(location, homeId, homeId, signal, async (client) => {
    await client.query('begin isolation level repeatable read, read only')
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
  })
}
