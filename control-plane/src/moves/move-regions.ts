// The regions of a move.
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'

/** Returns a region. @throws MoveError if it is not configured any more */
export function regionOf(id: string, { regions }: Pick<MoveDeps, 'regions'>) {
  const region = regions.get(id)
  if (region === undefined) throw new MoveError(`The region "${id}" is not configured.`)
  return region
}

/** Returns the URLs of the runtimes that serve the tenant while it shares those of the region. @throws MoveError */
export function sharedRuntimesOf(
  regionId: string,
  tenantId: string,
  deps: Pick<MoveDeps, 'regions'>,
): readonly string[] {
  return regionOf(regionId, deps).runtimeUrls({ id: tenantId, isolation: 'schema-per-tenant' })
}
