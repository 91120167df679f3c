// Checks for actions that need services of the tenant's own.
import { canBackUpServices, type Engine } from '../engines/index.ts'
import { ControlError } from '../platform/errors.ts'
import type { RegionConfig } from '../regions/index.ts'
import type { Tenant } from './tenant.ts'

/**
 * Checks that a tenant has services of its own. @param what subject of the message, for example `A restart` @throws
 * ControlError NOT_DEDICATED
 */
export function requireDedicated(tenant: Pick<Tenant, 'isolation'>, what: string): void {
  const { isolation } = tenant
  if (isolation !== 'schema-per-tenant') return
  throw new ControlError(
    'NOT_DEDICATED',
    `${what} requires a tenant with services of its own. The isolation of this one is ${isolation}.`,
  )
}

/**
 * Checks that a tenant has a cluster of its own. @param what subject of the message @throws ControlError
 * UNSUPPORTED_ISOLATION
 */
export function requireCluster({ isolation }: Pick<Tenant, 'isolation'>, what: string): void {
  if (isolation === 'cluster-per-tenant') return
  throw new ControlError(
    'UNSUPPORTED_ISOLATION',
    `${what} requires a tenant with the isolation cluster-per-tenant. The isolation of this one is ${isolation}.`,
  )
}

/**
 * Checks that a region can back up a tenant's home. @param what subject of the message, for example `A backup` @throws
 * ControlError BACKUPS_OFF
 */
export function requireBackups(
  { isolation }: Pick<Tenant, 'isolation'>,
  region: Pick<RegionConfig, 'id' | 'engine'>,
  what: string,
): void {
  if (isolation === 'schema-per-tenant' || canBackUpServices(region)) return
  throw new ControlError(
    'BACKUPS_OFF',
    `${what} of a tenant with the isolation ${isolation} requires a region with containers. ` +
      `The region "${region.id}" uses the engine "${region.engine}".`,
  )
}

/** Returns the engine of a tenant's region. @throws ControlError ENGINE_FAILED if the region no longer has one */
export function engineOf(
  deps: { engineOf(region: string): Engine | undefined },
  { region }: Pick<Tenant, 'region'>,
): Engine {
  const engine = deps.engineOf(region)
  if (engine === undefined) throw new ControlError('ENGINE_FAILED', `The region "${region}" has no engine.`)
  return engine
}
