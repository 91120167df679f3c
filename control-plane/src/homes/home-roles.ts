// Names of a home's roles and schemas. Pure.

export interface HomeRoles {
  system: string
  owner: string
  runtime: string
  ddl: string
  admin: string
}

/** A kind of role of a home. */
export type HomeRole = keyof HomeRoles

/** Logins whose passwords are stored. */
export const loginKinds = ['runtime', 'ddl', 'admin'] as const

/**
 * Returns the names of a home's five roles. `runtime`, `ddl` and `admin` log in; `system` only while the home is
 * migrated.
 */
export function homeRoles(tenantId: string): HomeRoles {
  return {
    system: `${tenantId}_system`,
    owner: `${tenantId}_owner`,
    runtime: tenantId,
    ddl: `${tenantId}_ddl`,
    admin: `${tenantId}_admin`,
  }
}

/** Returns the name of the schema that holds a pristine copy of the service's tables while a home is compared with it. */
export function pristineSchema(tenantId: string): string {
  return `${tenantId}_pristine`
}

/** Returns the name of the schema in which a home is restored next to the one in use. */
export function restoredSchema(tenantId: string): string {
  return `${tenantId}_restored`
}

/** Returns the name of a home's schema that a restored one has replaced, until it is dropped. */
export function replacedSchema(tenantId: string): string {
  return `${tenantId}_replaced`
}

/** Returns the name of the schema that stores how far the changes after a move have flowed back into the old home. */
export function reverseSchema(tenantId: string): string {
  return `${tenantId}_reverse`
}

/** Returns the name of the login that reads a home for a backup, and exists only meanwhile. */
export function readerRole(tenantId: string): string {
  return `tenantry_reader_${tenantId.slice(2)}`
}

/** Returns the name of the login that creates a restored home's objects, and exists only meanwhile. */
export function loaderRole(tenantId: string): string {
  return `tenantry_loader_${tenantId.slice(2)}`
}
