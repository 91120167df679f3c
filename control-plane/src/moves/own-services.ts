// A Postgres and a runtime of the tenant's own as an end of a move. As its destination, they run before the switch, with an
// empty database, and no watch sends the tenant to that runtime before its isolation changes.
import { createRoles } from '../backups/index.ts'
import { startServices, type Region, type Snapshot } from '../reconcile/index.ts'
import { componentServices, type OwnIsolation } from '../stacks/index.ts'
import type { Destination } from './destination.ts'
import { chooseFiles, sharedFiles, transferBetween, whileFilesStay, type FileEnd } from './file-ends.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import { dropSlotSql } from './move-sql.ts'
import { regionAfter, type MoveJob, type Stream } from './move.ts'
import type { Origin } from './origin.ts'
import { closeOwnHome, ownHomeOf, type OwnHome } from './own-home.ts'
import { openLogins } from './open-logins.ts'

const psql = ['psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-U', 'postgres'] as const

/** Returns new services of the tenant's own. */
export function ownDestination(job: MoveJob, isolation: OwnIsolation, deps: MoveDeps): Destination {
  const { tenantId: id } = job
  const own = ownHomeOf(regionAfter(job), job, isolation, deps)
  const { region, location } = own
  const source = sharedFiles(job.region, id, deps)
  const target: FileEnd = { isOwn: true, location: own.files }
  return {
    location,
    files: transferBetween(source, target, id),
    whileHeld: (signal, work) => whileFilesStay(source, id, deps, signal, work),

    async prepare(signal) {
      const tenant = await deps.tenant(id)
      if (tenant === undefined) throw new MoveError('The tenant does not exist any more.')
      await startFor(tenant, isolation, region, deps, signal)
      await chooseFiles(job, source, target, deps, signal)
      await createRoles(tenant, own, signal)
    },

    openLogins: () => openLogins(own.home, id, deps),
    removeSlot: (stream, signal) => removeSlot(stream, job, isolation, own, deps, signal),

    async removeCopy(removeFollowing, signal) {
      await removeServices(job, isolation, own, signal)
      await removeFollowing()
      await deps.ledger.releaseServices(job, deps.epoch)
    },

    removeUnserved: (signal) => removeServices(job, isolation, own, signal),
  }
}

/** Returns the tenant's own services as those that it leaves. */
export function ownOrigin(job: MoveJob, isolation: OwnIsolation, deps: MoveDeps): Origin {
  const { tenantId: id } = job
  const own = ownHomeOf(job.region, job, isolation, deps)
  const remove = async (signal: AbortSignal) => {
    await removeServices(job, isolation, own, signal)
    await deps.ledger.releaseServices(job, deps.epoch)
  }
  return {
    location: own.location,
    isRemoved: async (signal) => !(await own.location.isPresent(signal)),
    removeSlot: (stream, signal) => removeSlot(stream, job, isolation, own, deps, signal),

    removeRemains: remove,
    removeRetained: remove,
    close: (signal) => closeOwnHome(own, id, signal),

    async ensureRunning(signal) {
      if (await own.location.isPresent(signal)) return
      const tenant = await deps.tenant(id)
      if (tenant !== undefined && tenant.desired !== 'deleted')
        await startFor(tenant, isolation, own.region, deps, signal)
    },
  }
}

/** Starts services of the tenant's own: those that it has, or for a tenant that shares those of its region. */
async function startFor(
  tenant: Snapshot,
  isolation: OwnIsolation,
  region: Region,
  deps: MoveDeps,
  signal: AbortSignal,
): Promise<void> {
  const isSame = tenant.isolation === isolation && tenant.regionId === region.config.id
  const own = { regionId: region.config.id, isolation, database: undefined, homeVersion: undefined }
  const wanted = { ...tenant, ...(isSame ? {} : own), operation: undefined }
  await startServices(wanted, { ...deps, store: deps.services, region }, signal)
}

/** Removes the services with their data, and what the region has of their cluster. */
async function removeServices(
  { tenantId: id }: MoveJob,
  isolation: OwnIsolation,
  { region, engine }: OwnHome,
  signal: AbortSignal,
): Promise<void> {
  await engine.remove(id, signal)
  await region.closeCluster({ id, isolation }, signal)
}

/** Removes a slot from every member of a cluster: a former primary may have it, too. A single Postgres has none any more. */
export async function removeSlot(
  stream: Stream,
  { tenantId: id }: MoveJob,
  isolation: OwnIsolation,
  { engine }: OwnHome,
  { log }: Pick<MoveDeps, 'log'>,
  signal: AbortSignal,
): Promise<void> {
  if (isolation !== 'cluster-per-tenant') return
  for (const member of componentServices(isolation).postgres) {
    const options = { input: dropSlotSql(stream), signal }
    // A member that does not respond retains WAL for the slot up to a limit, until the next move or its own end.
    await engine.exec(id, member, [...psql, '-d', 'postgres'], options).catch((cause: unknown) => {
      signal.throwIfAborted()
      log.warn({ tenant: id, member, err: cause }, 'A slot of a move could not be removed from a member.')
    })
  }
}
