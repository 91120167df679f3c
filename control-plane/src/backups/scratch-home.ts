// A scratch location for a backup's home: services without a network, with the roles that the dump refers to.
import { randomBytes } from 'node:crypto'
import type { Engine } from '../engines/index.ts'
import { dedicatedDatabase, prepareSharedDatabaseSql, homeRoles, scramVerifier } from '../homes/index.ts'
import { BackupError } from './backup-error.ts'
import { asSuperuser, blobsOf, type HomeLocation } from './home-location.ts'
import type { Login } from './login.ts'
import { foreignRolesSql } from './rehome-sql.ts'
import { scratchStack, type ScratchParts } from './scratch-stack.ts'

/** Command that waits until Postgres accepts connections. */
export const untilReady = [
  'sh',
  '-c',
  'for i in $(seq 1200); do pg_isready -q -h /run/postgresql -U postgres && exit 0; sleep 0.05; done; exit 1',
]

/**
 * Creates the scratch services, without a home. Nothing of an earlier attempt remains.
 * @param homeId the tenant whose directory the files go into
 */
export async function makeScratchServer(
  engine: Engine,
  stackId: string,
  parts: ScratchParts,
  homeId: string,
  signal: AbortSignal,
): Promise<HomeLocation> {
  await engine.remove(stackId, signal)
  await engine.converge(scratchStack(stackId, parts), signal)
  const location: HomeLocation = {
    engine,
    stack: stackId,
    postgres: 'postgres',
    filesServices: ['files'],
    database: dedicatedDatabase,
    blobs: blobsOf(homeId),
  }
  const { code } = await engine.exec(stackId, 'postgres', untilReady, { signal })
  if (code !== 0) throw new BackupError('FAILED', 'The Postgres of the scratch home does not become ready.')
  await asSuperuser(location, dedicatedDatabase, prepareSharedDatabaseSql(dedicatedDatabase), signal)
  return location
}

/**
 * Creates the scratch services with the roles of a dump.
 * @param tenantId the tenant of the dump
 * @param homeId the tenant whose directory the files go into
 */
export async function makeScratchHome(
  engine: Engine,
  stackId: string,
  parts: ScratchParts,
  { tenantId, homeId }: { tenantId: string; homeId: string },
  signal: AbortSignal,
): Promise<{ location: HomeLocation; login: Login }> {
  const location = await makeScratchServer(engine, stackId, parts, homeId, signal)
  const login = { role: homeRoles(tenantId).ddl, password: randomBytes(24).toString('base64url') }
  const verifier = scramVerifier(login.password, randomBytes(16))
  await asSuperuser(location, dedicatedDatabase, foreignRolesSql(tenantId, verifier), signal)
  return { location, login }
}
