// Chooses where a move brings a home from, and where to.
import type { Destination } from './destination.ts'
import type { MoveDeps } from './move-deps.ts'
import { isOwn, type MoveJob } from './move.ts'
import type { Origin } from './origin.ts'
import { otherDestination, otherOrigin } from './other-services.ts'
import { ownDestination, ownOrigin } from './own-services.ts'
import { sharedDestination, sharedOrigin } from './shared-database.ts'

/** Returns the destination of a move. */
export function destinationOf(job: MoveJob, deps: MoveDeps): Destination {
  const { fromIsolation: from, toIsolation: to } = job
  if (!isOwn(to)) return sharedDestination(job, deps)
  return isOwn(from) ? otherDestination(job, { from, to }, deps) : ownDestination(job, to, deps)
}

/** Returns the origin of a move. */
export function originOf(job: MoveJob, deps: MoveDeps): Origin {
  const { fromIsolation: from, toIsolation: to } = job
  if (!isOwn(from)) return sharedOrigin(job, deps)
  return isOwn(to) ? otherOrigin(job, { from, to }, deps) : ownOrigin(job, from, deps)
}
