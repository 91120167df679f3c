// The Postgres and the runtimes of a tenant's own, as a move uses them.
import { bucketOf, currentServer, type FilesLocation } from '../backups/index.ts'
import type { Engine } from '../engines/index.ts'
import { dedicatedDatabase, type HomeServer } from '../homes/index.ts'
import type { Region } from '../reconcile/index.ts'
import { componentServices, type OwnIsolation } from '../stacks/index.ts'
import type { MoveLocation } from './locations.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import { regionOf } from './move-regions.ts'
import type { MoveJob } from './move.ts'

/** A tenant's own Postgres and runtimes. */
export interface OwnHome {
  region: Region
  engine: Engine
  home: HomeServer
  files: FilesLocation
  location: MoveLocation
}

/**
 * Returns a tenant's own services in a region, which need not exist.
 * @throws MoveError if the region has no engine for services
 */
export function ownHomeOf(
  regionId: string,
  { tenantId: id }: Pick<MoveJob, 'tenantId'>,
  isolation: OwnIsolation,
  deps: Pick<MoveDeps, 'regions' | 'runtimeFiles'>,
): OwnHome {
  const region = regionOf(regionId, deps)
  const { engine } = region
  if (engine === undefined) throw new MoveError(`The region "${regionId}" has no engine for services.`)
  const { postgres, runtime } = componentServices(isolation)
  const serviceNow = (signal: AbortSignal) => region.primaryService({ id, isolation }, signal)
  const server = currentServer({ engine, stack: id, database: dedicatedDatabase, serviceNow })
  const isPresent = async (signal: AbortSignal) => {
    const { containers } = await engine.observe(id, signal)
    const isOfPostgres = ({ state, labels }: (typeof containers)[number]) =>
      state === 'running' && postgres.includes(labels.service ?? '')
    if (!containers.some(isOfPostgres)) return false
    await rejectUnready(engine, id, serviceNow, signal)
    return true
  }
  return {
    region,
    engine,
    home: region.home({ id, isolation, database: undefined }),
    files: { engine, stack: id, filesServices: runtime, ...bucketOf(deps, { id, regionId, isolation }) },
    location: { ...server, isPresent },
  }
}

/** Closes a home that the tenant has left to its logins. Services that do not run have no sessions. */
export async function closeOwnHome(
  { home, location }: Pick<OwnHome, 'home' | 'location'>,
  tenantId: string,
  signal: AbortSignal,
): Promise<void> {
  if (await location.isPresent(signal)) await home.endSessions(tenantId)
}

/** Rejects a Postgres that does not accept sessions. @throws MoveError, temporary; EngineError */
async function rejectUnready(
  engine: Engine,
  tenantId: string,
  serviceNow: (signal: AbortSignal) => Promise<string>,
  signal: AbortSignal,
): Promise<void> {
  const command = ['pg_isready', '-q', '-h', '/run/postgresql', '-U', 'postgres']
  const { code } = await engine.exec(tenantId, await serviceNow(signal), command, { signal })
  if (code !== 0) throw new MoveError("The tenant's own Postgres does not accept sessions.", { isTemporary: true })
}
