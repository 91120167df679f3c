// What only tenants with services of their own can do.
import type { Engine } from '../engines/index.ts'
import { ControlError } from '../platform/errors.ts'
import type { Tenant } from './tenant.ts'

/** Checks that a tenant has services of its own. @param what stands in the message, e.g. `a restart` @throws ControlError NOT_DEDICATED */
export function requireDedicated({ isolation }: Pick<Tenant, 'isolation'>, what: string): void {
  if (isolation !== 'schema-per-tenant') return
  throw new ControlError(
    'NOT_DEDICATED',
    `${what} is for tenants with services of their own, and this one is ${isolation}`,
  )
}

/** The engine of a tenant's region. @throws ControlError ENGINE_FAILED when the tenant's region has no engine any more */
export function engineOf(
  deps: { engineOf(region: string): Engine | undefined },
  { region }: Pick<Tenant, 'region'>,
): Engine {
  const engine = deps.engineOf(region)
  if (engine === undefined) throw new ControlError('ENGINE_FAILED', `region "${region}" has no engine now`)
  return engine
}
