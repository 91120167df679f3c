// The two ends of a move between a single Postgres and a cluster of the tenant's own. The services of both run during the move, on one
// network. On one host, their runtimes use one volume, so that the files stay where they are. On several, the files of a single database
// are on a volume of its host, and those of a cluster in the region's bucket.
import { createRoles } from '../backups/index.ts'
import { startServices } from '../reconcile/index.ts'
import type { OwnIsolation } from '../stacks/index.ts'
import type { Destination } from './destination.ts'
import { chooseFiles, transferBetween, whileFilesStay, type FileEnd } from './file-ends.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import { isHeld, type MoveJob } from './move.ts'
import type { Origin } from './origin.ts'
import { ownHomeOf } from './own-home.ts'
import { removeSlot } from './own-services.ts'
import { removeSharedFiles } from './remove-shared-files.ts'
import { rejectSilent } from './silent-services.ts'

/** The isolation models between which a tenant moves. */
interface OwnModels {
  from: OwnIsolation
  to: OwnIsolation
}

/** Returns the services that the tenant gets in addition to its present ones. */
export function otherDestination(job: MoveJob, { from, to }: OwnModels, deps: MoveDeps): Destination {
  const { tenantId: id } = job
  const { ledger, epoch } = deps
  const own = ownHomeOf(job.region, job, to, deps)
  const { region, location, home } = own
  const source: FileEnd = { isOwn: true, location: ownHomeOf(job.region, job, from, deps).files }
  const target: FileEnd = { isOwn: true, location: own.files }
  return {
    location,
    files: region.spansHosts ? transferBetween(source, target, id) : undefined,
    whileHeld: (signal, work) => whileFilesStay(source, id, deps, signal, work),

    async prepare(signal) {
      await ledger.addServices(job, { isolation: to, images: await region.images(signal, to) }, epoch)
      const tenant = await deps.tenant(id)
      if (tenant === undefined) throw new MoveError('The tenant does not exist any more.')
      await startServices(tenant, { ...deps, store: deps.services, region }, signal)
      await region.awaitDatabase({ ...tenant, isolation: to }, signal)
      if (region.spansHosts) await chooseFiles(job, source, target, deps, signal)
      await createRoles(tenant, { location, home }, signal)
    },

    // Such a move is not reverted.
    openLogins: () => Promise.resolve(),
    removeSlot: (stream, signal) => removeSlot(stream, job, to, own, deps, signal),

    async removeCopy(removeFollowing, signal) {
      await ledger.endServices(job, to, epoch)
      // A host with some of the services may not respond. No request waits for their removal.
      if (isHeld(job)) await ledger.release(job, 'catch up', epoch)
      await removeServices(job, to, deps, signal)
      await removeFollowing()
    },

    removeUnserved: (signal) => removeServices(job, to, deps, signal),
  }
}

/** Returns the services that the tenant leaves. */
export function otherOrigin(job: MoveJob, { from }: OwnModels, deps: MoveDeps): Origin {
  const own = ownHomeOf(job.region, job, from, deps)
  return {
    location: own.location,
    async isRemoved(signal) {
      if (await own.location.isPresent(signal)) return false
      await rejectSilent(job.tenantId, from, own.region, deps)
      return true
    },
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

/**
 * Removes services that the tenant has in addition to those of its isolation, with the files that only they use.
 * @throws MoveError, temporary, as long as a host with some of them does not respond and is not lost
 */
async function removeServices(
  job: MoveJob,
  isolation: OwnIsolation,
  deps: MoveDeps,
  signal: AbortSignal,
): Promise<void> {
  const { tenantId: id } = job
  const { ledger, epoch } = deps
  const { region } = ownHomeOf(job.region, job, isolation, deps)
  await ledger.endServices(job, isolation, epoch)
  const silent = await region.removeServices(id, isolation, signal)
  if (silent.length > 0) {
    await rejectSilent(id, isolation, region, deps, silent)
    await region.closeCluster({ id, isolation }, signal)
  }
  // The bucket has copies for a cluster that was not switched to, or those that a cluster has left.
  if (isolation === 'cluster-per-tenant' && job.files === 'copied')
    await removeSharedFiles(job.region, id, deps, signal)
  await ledger.dropServices(job, isolation, epoch)
}
