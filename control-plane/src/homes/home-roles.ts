// Names of a home's roles and schemas. Pure.

export interface HomeRoles {
  system: string
  owner: string
  runtime: string
  ddl: string
  admin: string
}

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
