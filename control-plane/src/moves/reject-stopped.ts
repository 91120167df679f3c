// What a move has in services of the tenant's own that do not run can neither be read nor removed.
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import type { HomeLocation } from './move.ts'

/**
 * Rejects services that do not run, if the tenant will use them again.
 * @param isThere whether a home is in them
 * @throws MoveError, temporary
 */
export async function rejectStopped(
  tenantId: string,
  isThere: (home: HomeLocation) => boolean,
  deps: Pick<MoveDeps, 'tenant'>,
): Promise<void> {
  const tenant = await deps.tenant(tenantId)
  if (tenant !== undefined && tenant.desired !== 'deleted' && isThere(tenant))
    throw new MoveError("The tenant's own services do not run.", { isTemporary: true })
}
