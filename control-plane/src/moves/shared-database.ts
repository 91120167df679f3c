// A shared database of the region as an end of a move. The roles of a home exist on the whole server.
import { asAdmin, createRoles, whileHeld, type SharedLocation } from '../backups/index.ts'
import { replacedSchema } from '../homes/index.ts'
import { superuserOf } from '../regions/index.ts'
import type { Destination } from './destination.ts'
import { filesIntoRuntimes } from './files-into-runtimes.ts'
import type { MoveLocation } from './locations.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import { regionOf, sharedRuntimesOf } from './move-regions.ts'
import { isOwn, type MoveJob } from './move.ts'
import { openLogins } from './open-logins.ts'
import type { Origin } from './origin.ts'
import { ownHomeOf, rejectOtherStore, type OwnHome } from './own-home.ts'

const unknownMilliseconds = 10_000
const pollMilliseconds = 50

const progress = (signal: AbortSignal) => ({ signal, onPart: () => undefined })

/** Returns the database to which a move leads. */
export function sharedDestination(job: MoveJob, deps: MoveDeps): Destination {
  const { fromIsolation: from } = job
  return isOwn(from) ? firstDatabase(job, ownHomeOf(job, from, deps), deps) : otherDatabase(job, deps)
}

/** The destination of a home of the same server. */
function otherDatabase(job: MoveJob, deps: MoveDeps): Destination {
  const { tenantId, to } = job
  const location = sharedLocation(job, to, deps)
  return {
    location,
    files: undefined,
    whileHeld: (signal, work) => work(signal),
    prepare: () => homeIn(job, to, deps).prepare(() => undefined),
    // The logins are those of the home that the tenant has.
    openLogins: () => Promise.resolve(),
    removeSlot: () => Promise.resolve(),
    async removeCopy(removeFollowing, signal) {
      await removeFollowing()
      if (await location.isPresent(signal)) await homeIn(job, to, deps).dropSchema(tenantId, progress(signal))
    },
    removeUnserved: () => Promise.resolve(),
  }
}

/** The destination of a home that was the tenant's own. */
function firstDatabase(job: MoveJob, own: OwnHome, deps: MoveDeps): Destination {
  const { tenantId, to } = job
  const location = sharedLocation(job, to, deps)
  const urls = sharedRuntimesOf(job, deps)
  const remove = async (signal: AbortSignal) => {
    if (await location.isPresent(signal)) await homeIn(job, to, deps).drop(tenantId, progress(signal))
    await removeSharedFiles(urls, tenantId, deps, signal)
  }
  return {
    location,
    files: filesIntoRuntimes({ source: own.files, target: deps.runtimeFiles(urls, tenantId), tenantId }),
    whileHeld: (signal, work) => whileHeld(own.files, tenantId, deps.clock, signal, work),
    async prepare(signal) {
      const tenant = await deps.tenant(tenantId)
      if (tenant === undefined) throw new MoveError('The tenant does not exist any more.')
      await rejectOtherStore(own, signal)
      await createRoles(tenant, { location, home: homeIn(job, to, deps) }, signal)
    },
    openLogins: () => openLogins(homeIn(job, to, deps), tenantId, deps),
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
  const { tenantId, from } = job
  const urls = sharedRuntimesOf(job, deps)
  const home = homeIn(job, from, deps)
  const origin = {
    location: sharedLocation(job, from, deps),
    isRemoved: () => Promise.resolve(false),
    removeSlot: () => Promise.resolve(),
    ensureRunning: () => Promise.resolve(),
  }
  if (!isOwn(job.toIsolation))
    return {
      ...origin,
      removeRemains: (signal) => home.dropSchema(replacedSchema(tenantId), progress(signal)),
      // Its logins are those of the home that the tenant has.
      close: () => Promise.resolve(),
      removeRetained: (signal) => home.dropSchema(tenantId, progress(signal)),
    }
  const remove = async (signal: AbortSignal) => {
    await removeSharedFiles(urls, tenantId, deps, signal)
    await home.drop(tenantId, progress(signal))
  }
  return { ...origin, removeRemains: remove, close: () => home.endSessions(tenantId), removeRetained: remove }
}

/** Returns a shared database of the move's region. */
function sharedLocation(job: MoveJob, database: string, deps: Pick<MoveDeps, 'regions'>): MoveLocation {
  const location = { postgresUrl: superuserOf(regionOf(job, deps).config), database }
  return { ...location, isPresent: (signal) => isPresent(location, signal) }
}

/** Returns the server of the homes in a shared database of the move's region. */
function homeIn(job: MoveJob, database: string, deps: Pick<MoveDeps, 'regions'>) {
  return regionOf(job, deps).home({ id: job.tenantId, isolation: 'schema-per-tenant', database })
}

/** Whether the database exists. It accepts no connections, and has never had a home, while its creation is not complete. */
async function isPresent({ postgresUrl, database }: SharedLocation, signal: AbortSignal): Promise<boolean> {
  const { rows } = await asAdmin({ postgresUrl, database: 'postgres' }, signal, (client) =>
    client.query('select 1 from pg_database where datname = $1 and datallowconn', [database]),
  )
  return rows.length > 0
}

/** Removes the tenant's files from the shared runtimes, which do not serve it. */
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
