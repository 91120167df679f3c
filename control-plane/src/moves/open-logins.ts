// Opens a home that has stayed for a revert to the tenant's logins. Their passwords may have changed meanwhile.
import { passwordsOf } from '../backups/index.ts'
import type { HomeServer } from '../homes/index.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'

/** Lets the logins in, with their present passwords. @throws MoveError if the tenant does not exist any more */
export async function openLogins(
  home: Pick<HomeServer, 'openLogins'>,
  tenantId: string,
  deps: Pick<MoveDeps, 'tenant'>,
): Promise<void> {
  const tenant = await deps.tenant(tenantId)
  if (tenant === undefined) throw new MoveError('The tenant does not exist any more.')
  await home.openLogins(tenantId, passwordsOf(tenant))
}
