// A shared database of a region as an end of a move. The roles of a home exist on the whole server.
import { asAdmin, createRoles, type SharedLocation } from '../backups/index.ts'
import { replacedSchema, type HomeServer } from '../homes/index.ts'
import { superuserOf } from '../regions/index.ts'
import type { Destination } from './destination.ts'
import { chooseFiles, sharedFiles, transferBetween, whileFilesStay, type FileEnd } from './file-ends.ts'
import type { MoveLocation } from './locations.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import { regionOf } from './move-regions.ts'
import { changesServer, isOwn, regionAfter, type MoveJob } from './move.ts'
import { openLogins } from './open-logins.ts'
import type { Origin } from './origin.ts'
import { ownHomeOf } from './own-home.ts'
import { removeSharedFiles } from './remove-shared-files.ts'

const progress = (signal: AbortSignal) => ({ signal, onPart: () => undefined })

/** Returns the database to which a move leads. */
export function sharedDestination(job: MoveJob, deps: MoveDeps): Destination {
  return changesServer(job) ? otherServer(job, deps) : otherDatabase(job, deps)
}

/** The destination of a home of the same server. */
function otherDatabase(job: MoveJob, deps: MoveDeps): Destination {
  const { tenantId, region, to } = job
  const location = sharedLocation(region, to, deps)
  const home = homeIn(region, job, to, deps)
  return {
    location,
    files: undefined,
    whileHeld: (signal, work) => work(signal),
    prepare: () => home.prepare(() => undefined),
    // The logins are those of the home that the tenant has.
    openLogins: () => Promise.resolve(),
    removeSlot: () => Promise.resolve(),
    async removeCopy(removeFollowing, signal) {
      await removeFollowing()
      if (await location.isPresent(signal)) await home.dropSchema(tenantId, progress(signal))
    },
    removeUnserved: () => Promise.resolve(),
  }
}

/** The destination of a home that was the tenant's own, or in another region. */
function otherServer(job: MoveJob, deps: MoveDeps): Destination {
  const { tenantId, region, fromIsolation: from, to } = job
  const regionId = regionAfter(job)
  const location = sharedLocation(regionId, to, deps)
  const home = homeIn(regionId, job, to, deps)
  const source: FileEnd = isOwn(from)
    ? { isOwn: true, location: ownHomeOf(region, job, from, deps).files }
    : sharedFiles(region, tenantId, deps)
  const target = sharedFiles(regionId, tenantId, deps)
  const remove = async (signal: AbortSignal) => {
    if (await location.isPresent(signal)) await dropHome(home, tenantId, signal)
    // Before files are copied, the runtimes may have the same store as those that serve the tenant.
    if (job.files === 'copied') await removeSharedFiles(regionId, tenantId, deps, signal)
  }
  return {
    location,
    files: transferBetween(source, target, tenantId),
    whileHeld: (signal, work) => whileFilesStay(source, tenantId, deps, signal, work),
    async prepare(signal) {
      const tenant = await deps.tenant(tenantId)
      if (tenant === undefined) throw new MoveError('The tenant does not exist any more.')
      await chooseFiles(job, source, target, deps, signal)
      await createRoles(tenant, { location, home }, signal)
    },
    openLogins: () => openLogins(home, tenantId, deps),
    removeSlot: () => Promise.resolve(),
    async removeCopy(removeFollowing, signal) {
      await removeFollowing()
      await remove(signal)
    },
    async removeUnserved(signal) {
      // Another purge removes the home where the control database has it.
      if ((await deps.tenant(tenantId)) === undefined) await remove(signal)
    },
  }
}

/** Returns the database that a home leaves. */
export function sharedOrigin(job: MoveJob, deps: MoveDeps): Origin {
  const { tenantId, region, from } = job
  const home = homeIn(region, job, from, deps)
  const origin = {
    location: sharedLocation(region, from, deps),
    isRemoved: () => Promise.resolve(false),
    removeSlot: () => Promise.resolve(),
    ensureRunning: () => Promise.resolve(),
  }
  if (!changesServer(job))
    return {
      ...origin,
      removeRemains: (signal) => home.dropSchema(replacedSchema(tenantId), progress(signal)),
      // Its logins are those of the home that the tenant has.
      close: () => Promise.resolve(),
      removeRetained: (signal) => home.dropSchema(tenantId, progress(signal)),
    }
  const remove = async (signal: AbortSignal) => {
    if (job.files !== 'stay') await removeSharedFiles(region, tenantId, deps, signal)
    await dropHome(home, tenantId, signal)
  }
  return { ...origin, removeRemains: remove, close: () => home.endSessions(tenantId), removeRetained: remove }
}

/** Returns a shared database of a region. */
function sharedLocation(regionId: string, database: string, deps: Pick<MoveDeps, 'regions'>): MoveLocation {
  const location = { postgresUrl: superuserOf(regionOf(regionId, deps).config), database }
  return { ...location, isPresent: (signal) => isPresent(location, signal) }
}

/** Returns the server of the homes in a shared database of a region. */
function homeIn(regionId: string, { tenantId: id }: MoveJob, database: string, deps: Pick<MoveDeps, 'regions'>) {
  return regionOf(regionId, deps).home({ id, isolation: 'schema-per-tenant', database })
}

/** Whether the database exists. It accepts no connections, and has never had a home, while its creation is not complete. */
async function isPresent({ postgresUrl, database }: SharedLocation, signal: AbortSignal): Promise<boolean> {
  const { rows } = await asAdmin({ postgresUrl, database: 'postgres' }, signal, (client) =>
    client.query('select 1 from pg_database where datname = $1 and datallowconn', [database]),
  )
  return rows.length > 0
}

/** Removes a home with its roles. A session that stayed would have none, also in a later home of the tenant. */
async function dropHome(home: HomeServer, tenantId: string, signal: AbortSignal): Promise<void> {
  await home.endSessions(tenantId)
  await home.drop(tenantId, progress(signal))
}
