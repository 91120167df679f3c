// A shared database of the region as the destination of a move. The roles of a home exist on the whole server.
import { asAdmin, type SharedLocation } from '../backups/index.ts'
import { replacedSchema } from '../homes/index.ts'
import { superuserOf } from '../regions/index.ts'
import type { Destination } from './destination.ts'
import type { MoveLocation } from './locations.ts'
import type { MoveDeps } from './move-deps.ts'
import { regionOf } from './move-regions.ts'
import type { MoveJob } from './move.ts'

/** Returns the destination. */
export function sharedDatabase(job: MoveJob, deps: MoveDeps): Destination {
  const { tenantId, from, to } = job
  const progress = (signal: AbortSignal) => ({ signal, onPart: () => undefined })
  return {
    location: sharedLocation(job, to, deps),
    notRevertible: undefined,
    prepare: () => homeIn(job, to, deps).prepare(() => undefined),
    copyFiles: () => Promise.resolve(undefined),
    async removeCopy(removeFollowing, signal) {
      await removeFollowing()
      if (await sharedLocation(job, to, deps).isPresent(signal))
        await homeIn(job, to, deps).dropSchema(tenantId, progress(signal))
    },
    removeSource: (_isServed, signal) => homeIn(job, from, deps).dropSchema(replacedSchema(tenantId), progress(signal)),
  }
}

/** Returns a shared database of the move's region. */
export function sharedLocation(job: MoveJob, database: string, deps: Pick<MoveDeps, 'regions'>): MoveLocation {
  const location = { postgresUrl: superuserOf(regionOf(job, deps).config), database }
  return { ...location, isPresent: (signal) => isPresent(location, signal) }
}

/** Returns the server of the homes in a shared database of the move's region. */
export function homeIn(job: MoveJob, database: string, deps: Pick<MoveDeps, 'regions'>) {
  return regionOf(job, deps).home({ id: job.tenantId, isolation: 'schema-per-tenant', database })
}

/** Whether the database exists. It accepts no connections, and has never had a home, while its creation is not complete. */
async function isPresent({ postgresUrl, database }: SharedLocation, signal: AbortSignal): Promise<boolean> {
  const { rows } = await asAdmin({ postgresUrl, database: 'postgres' }, signal, (client) =>
    client.query('select 1 from pg_database where datname = $1 and datallowconn', [database]),
  )
  return rows.length > 0
}
