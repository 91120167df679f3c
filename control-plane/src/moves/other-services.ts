// The two ends of a move between a single Postgres and a cluster of the tenant's own. The services of both run during the move, on one
// network, and their runtimes use one volume, so that the files stay where they are.
import { createRoles, whileHeld } from '../backups/index.ts'
import { startServices } from '../reconcile/index.ts'
import type { OwnIsolation } from '../stacks/index.ts'
import type { Destination } from './destination.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import type { MoveJob } from './move.ts'
import type { Origin } from './origin.ts'
import { ownHomeOf } from './own-home.ts'
import { removeSlot } from './own-services.ts'

/** The isolation models between which a tenant moves. */
interface OwnModels {
  from: OwnIsolation
  to: OwnIsolation
}

/** Returns the services that the tenant gets in addition to its present ones. */
export function otherDestination(job: MoveJob, { from, to }: OwnModels, deps: MoveDeps): Destination {
  const { tenantId: id } = job
  const own = ownHomeOf(job.region, job, to, deps)
  const { region, location, home } = own
  const { files: present } = ownHomeOf(job.region, job, from, deps)
  return {
    location,
    files: undefined,
    whileHeld: (signal, work) => whileHeld(present, id, deps.clock, signal, work),

    async prepare(signal) {
      await deps.ledger.addServices(job, { isolation: to, images: await region.images(signal, to) }, deps.epoch)
      const tenant = await deps.tenant(id)
      if (tenant === undefined) throw new MoveError('The tenant does not exist any more.')
      const wanted = { ...tenant, isolation: to }
      await region.openCluster(wanted, signal)
      await startServices(tenant, { ...deps, store: deps.services, region }, signal)
      await region.awaitDatabase(wanted, signal)
      await createRoles(tenant, { location, home }, signal)
    },

    // Such a move is not reverted.
    openLogins: () => Promise.resolve(),
    removeSlot: (stream, signal) => removeSlot(stream, job, to, own, deps, signal),

    async removeCopy(removeFollowing, signal) {
      await removeServices(job, to, deps, signal)
      await removeFollowing()
    },

    removeUnserved: (signal) => region.removeServices(id, to, signal),
  }
}

/** Returns the services that the tenant leaves. */
export function otherOrigin(job: MoveJob, { from }: OwnModels, deps: MoveDeps): Origin {
  const own = ownHomeOf(job.region, job, from, deps)
  return {
    location: own.location,
    isRemoved: async (signal) => !(await own.location.isPresent(signal)),
    removeSlot: (stream, signal) => removeSlot(stream, job, from, own, deps, signal),
    removeRemains: (signal) => removeServices(job, from, deps, signal),
    // Nothing stays for a revert.
    close: () => Promise.resolve(),
    async ensureRunning(signal) {
      if (await own.location.isPresent(signal)) return
      const tenant = await deps.tenant(job.tenantId)
      if (tenant !== undefined && tenant.desired !== 'deleted' && tenant.isolation === from)
        await startServices(tenant, { ...deps, store: deps.services, region: own.region }, signal)
    },
    removeRetained: (signal) => removeServices(job, from, deps, signal),
  }
}

/** Removes services that the tenant has in addition to those of its isolation. */
async function removeServices(
  job: MoveJob,
  isolation: OwnIsolation,
  deps: MoveDeps,
  signal: AbortSignal,
): Promise<void> {
  const { ledger, epoch } = deps
  await ledger.endServices(job, isolation, epoch)
  await ownHomeOf(job.region, job, isolation, deps).region.removeServices(job.tenantId, isolation, signal)
  await ledger.dropServices(job, isolation, epoch)
}
