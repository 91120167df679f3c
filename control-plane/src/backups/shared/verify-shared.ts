// Verifies a backup of a tenant that shares a database: restores its home into a scratch database of the region's server,
// compares it, and removes it.
import { createHash } from 'node:crypto'
import { homeRoles, prepareSharedDatabaseSql } from '../../homes/index.ts'
import { ensureClosedDatabase } from '../../platform/closed-databases.ts'
import { identifier } from '../../platform/identifiers.ts'
import type { PostgresUrl } from '../../platform/superuser-url.ts'
import type { Job } from '../backup.ts'
import { BackupError } from '../backup-error.ts'
import { sharedLocation, type JobDeps } from '../job-deps.ts'
import type { Load } from '../load-home.ts'
import { readFrames } from './dump-frames.ts'
import { loadDump } from './load-dump.ts'
import { eachFile } from './restored-files.ts'
import { asAdmin, removeLogins, removeReaders, scratchHomeId, type SharedLocation } from './shared-server.ts'

const server = 'postgres'
const prefix = 'tenantry_scratch_'
const removeMilliseconds = 60_000
const scratchPassword = { runtime: 'closed', ddl: 'closed', admin: 'closed' }

/**
 * Verifies a backup.
 * @throws BackupError
 */
export async function verifyShared(
  { operationId, backup }: Job,
  { manifest, files, step }: Pick<Load, 'manifest' | 'files' | 'step'>,
  deps: JobDeps,
  signal: AbortSignal,
): Promise<void> {
  const homeId = scratchHomeId(operationId)
  const location = sharedLocation(deps, backup.region, `${prefix}${homeId.slice(2)}`)
  await step('database')
  await removeScratch(location, homeId, signal)
  try {
    await asAdmin({ ...location, database: server }, signal, (client) =>
      ensureClosedDatabase(client, location.database),
    )
    await asAdmin(location, signal, (client) => client.query(prepareSharedDatabaseSql(location.database)))
    const onError = (error: unknown) =>
      deps.log.warn({ backup: backup.id, err: error }, 'A restore was interrupted by an error.')
    await loadDump(
      {
        location,
        homeId,
        schema: homeId,
        passwords: scratchPassword,
        manifest,
        frames: readFrames(files.read('database')),
        migrations: deps.migrations,
        onError,
      },
      signal,
    )
    await step('files')
    await eachFile(files, async ({ id, size, sha256 }, content) => {
      const hash = createHash('sha256')
      let bytes = 0
      for await (const chunk of content) {
        hash.update(chunk)
        bytes += chunk.length
      }
      if (bytes !== size || hash.digest('hex') !== sha256)
        throw new BackupError('MISMATCH', `The content of the file ${id} differs.`)
    })
  } finally {
    await removeScratch(location, homeId, deps.clock.timeout(removeMilliseconds))
  }
}

/** Removes the scratch databases and logins that an earlier control plane has left on a server. */
export async function removeScratchDatabases(postgresUrl: PostgresUrl, signal: AbortSignal): Promise<void> {
  await removeReaders({ postgresUrl, database: server }, signal)
  const { rows } = await asAdmin({ postgresUrl, database: server }, signal, (client) =>
    client.query<{ name: string }>(`select datname as name from pg_database where datname ~ '^${prefix}[0-9a-f]{20}$'`),
  )
  for (const { name } of rows) {
    await removeScratch({ postgresUrl, database: name }, `t_${name.slice(prefix.length)}`, signal)
  }
}

async function removeScratch(
  { postgresUrl, database }: SharedLocation,
  homeId: string,
  signal: AbortSignal,
): Promise<void> {
  const location = { postgresUrl, database: server }
  await asAdmin(location, signal, (client) =>
    client.query(`drop database if exists ${identifier(database)} with (force)`),
  )
  await removeLogins(location, homeId)
  const roles = Object.values<string>({ ...homeRoles(homeId) }).map(identifier)
  await asAdmin(location, signal, (client) => client.query(`drop role if exists ${roles.join(', ')}`))
}
