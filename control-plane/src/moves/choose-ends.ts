// Chooses where a move brings a home from, and where to.
import type { Destination } from './destination.ts'
import type { MoveDeps } from './move-deps.ts'
import type { MoveJob } from './move.ts'
import type { Origin } from './origin.ts'
import { ownDestination, ownOrigin } from './own-services.ts'
import { sharedDestination, sharedOrigin } from './shared-database.ts'

/** Returns the destination of a move. */
export function destinationOf(job: MoveJob, deps: MoveDeps): Destination {
  const { toIsolation: to } = job
  return to === undefined || to === 'schema-per-tenant' ? sharedDestination(job, deps) : ownDestination(job, to, deps)
}

/** Returns the origin of a move. */
export function originOf(job: MoveJob, deps: MoveDeps): Origin {
  const { fromIsolation: from } = job
  return from === undefined || from === 'schema-per-tenant' ? sharedOrigin(job, deps) : ownOrigin(job, from, deps)
}
