// Chooses where a move brings a home.
import type { Destination } from './destination.ts'
import type { MoveDeps } from './move-deps.ts'
import type { MoveJob } from './move.ts'
import { ownServices } from './own-services.ts'
import { sharedDatabase } from './shared-database.ts'

/** Returns the destination of a move. */
export function destinationOf(job: MoveJob, deps: MoveDeps): Destination {
  return job.toIsolation === undefined ? sharedDatabase(job, deps) : ownServices(job, deps)
}
