// A Postgres and a runtime of the tenant's own as the destination of a move. They run before the switch, with an empty
// database, and no watch sends the tenant to that runtime before its isolation changes.
import { blobsOf, containerServer, createRoles, type HomeLocation } from '../backups/index.ts'
import { EngineError, type Engine } from '../engines/index.ts'
import { dedicatedDatabase } from '../homes/index.ts'
import { startServices, type Snapshot } from '../reconcile/index.ts'
import { componentServices } from '../stacks/index.ts'
import { FileCopy, rejectOtherStore } from './copy-files.ts'
import type { Destination } from './destination.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import { regionOf } from './move-regions.ts'
import type { MoveJob } from './move.ts'
import { homeIn } from './shared-database.ts'

const unknownMilliseconds = 10_000
const pollMilliseconds = 50
const isolation = 'database-per-tenant'

/** Returns the destination. */
export function ownServices(job: MoveJob, deps: MoveDeps): Destination {
  const { tenantId: id, from } = job
  const region = regionOf(job, deps)
  const { engine } = region
  if (engine === undefined) throw new MoveError(`The region "${job.region}" has no engine for services.`)
  const home: HomeLocation = {
    engine,
    stack: id,
    postgres: 'postgres',
    filesServices: componentServices(isolation).runtime,
    database: dedicatedDatabase,
    blobs: blobsOf(id),
  }
  const location = { ...containerServer(home), isPresent: (signal: AbortSignal) => isRunning(engine, id, signal) }
  const sharedRuntimes = region.runtimeUrls({ id, isolation: 'schema-per-tenant' })

  return {
    location,
    notRevertible: 'A move to services of its own cannot be reverted.',

    async prepare(signal) {
      const tenant = await deps.tenant(id)
      if (tenant === undefined) throw new MoveError('The tenant does not exist any more.')
      const wanted: Snapshot = {
        ...tenant,
        isolation,
        database: undefined,
        homeVersion: undefined,
        operation: undefined,
      }
      const run = { ...deps, store: deps.services, region }
      await startServices(wanted, run, signal)
      await rejectOtherStore(home, signal)
      await createRoles(tenant, { location, home: region.home(wanted) }, signal)
    },

    copyFiles: (signal) => FileCopy.open(deps.runtimeFiles(sharedRuntimes, id), home, deps, signal),

    async removeCopy(removeFollowing, signal) {
      await engine.remove(id, signal)
      await removeFollowing()
      await deps.ledger.releaseServices(job, deps.epoch)
    },

    async removeSource(isServed, signal) {
      if (!isServed) await engine.remove(id, signal)
      await removeSharedFiles(sharedRuntimes, id, deps, signal)
      await homeIn(job, from, deps).drop(id, { signal, onPart: () => undefined })
    },
  }
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

/** Removes the tenant's files from the shared runtimes, which do not serve it any more. */
async function removeSharedFiles(
  urls: readonly string[],
  tenantId: string,
  { probe, clock }: MoveDeps,
  signal: AbortSignal,
): Promise<void> {
  const bounded = AbortSignal.any([signal, clock.timeout(unknownMilliseconds)])
  for (const url of urls) {
    while ((await probe.tenantHealth(url, tenantId, bounded)) !== undefined)
      await clock.sleep(pollMilliseconds, bounded)
    await probe.removeData(url, tenantId, signal)
  }
}
