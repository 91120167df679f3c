// The region of a move.
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import type { MoveJob } from './move.ts'

/** Returns the region. @throws MoveError if it is not configured any more */
export function regionOf({ region: id }: Pick<MoveJob, 'region'>, { regions }: Pick<MoveDeps, 'regions'>) {
  const region = regions.get(id)
  if (region === undefined) throw new MoveError(`The region "${id}" is not configured.`)
  return region
}

/** Returns the URLs of the runtimes that serve the tenant while it shares them. @throws MoveError */
export function sharedRuntimesOf(
  job: Pick<MoveJob, 'region' | 'tenantId'>,
  deps: Pick<MoveDeps, 'regions'>,
): readonly string[] {
  return regionOf(job, deps).runtimeUrls({ id: job.tenantId, isolation: 'schema-per-tenant' })
}
