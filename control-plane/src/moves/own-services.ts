// A Postgres and a runtime of the tenant's own as an end of a move. As its destination, they run before the switch, with an
// empty database, and no watch sends the tenant to that runtime before its isolation changes.
import { createRoles } from '../backups/index.ts'
import { startServices, type Snapshot } from '../reconcile/index.ts'
import type { Destination } from './destination.ts'
import { filesIntoVolume } from './files-into-volume.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import type { MoveJob } from './move.ts'
import type { Origin } from './origin.ts'
import { ownHomeOf, ownIsolation, rejectOtherStore } from './own-home.ts'
import { sharedRuntimesOf } from './move-regions.ts'

/** Returns new services of the tenant's own. */
export function ownDestination(job: MoveJob, deps: MoveDeps): Destination {
  const { tenantId: id } = job
  const own = ownHomeOf(job, deps)
  const { region, engine, location } = own
  return {
    location,
    files: filesIntoVolume(deps.runtimeFiles(sharedRuntimesOf(job, deps), id), own.home, id),

    async prepare(signal) {
      const tenant = await deps.tenant(id)
      if (tenant === undefined) throw new MoveError('The tenant does not exist any more.')
      const wanted: Snapshot = {
        ...tenant,
        isolation: ownIsolation,
        database: undefined,
        homeVersion: undefined,
        operation: undefined,
      }
      const run = { ...deps, store: deps.services, region }
      await startServices(wanted, run, signal)
      await rejectOtherStore(own, signal)
      await createRoles(tenant, { location, home: region.home(wanted) }, signal)
    },

    async removeCopy(removeFollowing, signal) {
      await engine.remove(id, signal)
      await removeFollowing()
      await deps.ledger.releaseServices(job, deps.epoch)
    },

    removeUnserved: (signal) => engine.remove(id, signal),
  }
}

/** Returns the tenant's own services as those that it leaves. */
export function ownOrigin(job: MoveJob, deps: MoveDeps): Origin {
  const { tenantId: id } = job
  const { engine, location } = ownHomeOf(job, deps)
  return {
    location,
    isRemoved: async (signal) => !(await location.isPresent(signal)),

    async removeRemains(signal) {
      await engine.remove(id, signal)
      await deps.ledger.releaseServices(job, deps.epoch)
    },
  }
}
