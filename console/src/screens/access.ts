// Which sessions may open which screens. The limits are those of control-plane/src/keys/limited-access.ts.
import type { ScreenAccess } from '../session.ts'

const allScopes: ScreenAccess = { scopes: ['admin', 'read', 'billing'], limit: 'tenant' }

const screens: Record<string, ScreenAccess> = {
  regions: { scopes: ['admin', 'read', 'billing'], limit: 'region' },
  rollouts: { scopes: ['admin', 'read'], limit: 'region' },
  webhooks: { scopes: ['admin', 'read'], limit: 'nothing' },
  keys: { scopes: ['admin'], limit: 'tenant' },
  sessions: { scopes: ['admin'], limit: 'nothing' },
  audit: { scopes: ['admin'], limit: 'nothing' },
}

/** The figures of all tenants, and those that need attention. */
export const fleetAccess: ScreenAccess = { scopes: ['admin', 'read'], limit: 'nothing' }

/** The hosts of the regions. */
export const hostsAccess: ScreenAccess = { scopes: ['admin', 'read'], limit: 'region' }

/** The sources of usage of the whole installation. */
export const sourcesAccess: ScreenAccess = { scopes: ['admin', 'read', 'billing'], limit: 'nothing' }

/** Creating tenants. */
export const creationAccess: ScreenAccess = { scopes: ['admin'], limit: 'region' }

/** Returns which sessions may open the screen at the first part of an address. */
export function accessOf(section: string): ScreenAccess {
  return screens[section] ?? allScopes
}
