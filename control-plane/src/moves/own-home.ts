// The Postgres and the runtime of a tenant's own, as a move uses them.
import { blobsOf, containerServer, type HomeLocation } from '../backups/index.ts'
import { EngineError, type Engine } from '../engines/index.ts'
import { dedicatedDatabase } from '../homes/index.ts'
import type { Region } from '../reconcile/index.ts'
import { componentServices } from '../stacks/index.ts'
import type { MoveLocation } from './locations.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import { regionOf } from './move-regions.ts'
import type { MoveJob } from './move.ts'

export const ownIsolation = 'database-per-tenant'

const otherStore =
  'The files of the region are in a store that all of its runtimes share, so that they cannot be moved.'

/** A tenant's own Postgres and runtime. */
export interface OwnHome {
  region: Region
  engine: Engine
  home: HomeLocation
  location: MoveLocation
}

/** Returns a tenant's own services, which need not exist. @throws MoveError if the region has no engine for services */
export function ownHomeOf(job: MoveJob, deps: Pick<MoveDeps, 'regions'>): OwnHome {
  const region = regionOf(job, deps)
  const { engine } = region
  if (engine === undefined) throw new MoveError(`The region "${job.region}" has no engine for services.`)
  const home: HomeLocation = {
    engine,
    stack: job.tenantId,
    postgres: 'postgres',
    filesServices: componentServices(ownIsolation).runtime,
    database: dedicatedDatabase,
    blobs: blobsOf(job.tenantId),
  }
  const isPresent = (signal: AbortSignal) => isRunning(engine, job.tenantId, signal)
  return { region, engine, home, location: { ...containerServer(home), isPresent } }
}

/** Rejects a runtime whose files are not on its volume. @throws MoveError */
export async function rejectOtherStore({ engine, home }: OwnHome, signal: AbortSignal): Promise<void> {
  const [service] = home.filesServices
  const script = '[ -z "$TENANTRY_STORAGE_BACKEND" ] || [ "$TENANTRY_STORAGE_BACKEND" = local ]'
  const { code } = await engine.exec(home.stack, service, ['bash', '-c', script], { signal })
  if (code !== 0) throw new MoveError(otherStore)
}

/** Whether the tenant has a Postgres of its own that runs. @throws MoveError, temporary, if it does not accept sessions */
async function isRunning(engine: Engine, tenantId: string, signal: AbortSignal): Promise<boolean> {
  const result = await engine
    .exec(tenantId, 'postgres', ['pg_isready', '-q', '-h', '/run/postgresql', '-U', 'postgres'], { signal })
    .catch((cause: unknown) => {
      if (cause instanceof EngineError && cause.code === 'NOT_FOUND') return undefined
      throw cause
    })
  if (result !== undefined && result.code !== 0)
    throw new MoveError("The tenant's own Postgres does not accept sessions.", { isTemporary: true })
  return result !== undefined
}
