// The server of one tenant's home, as the reconciler uses it: a database that many tenants share, or a server of its own.
// Every call may be repeated after an interruption at any point.

import type { HomeReport } from './home-report.ts'

/** Passwords of a home's three logins, as plain text. */
export interface HomePasswords {
  runtime: string
  ddl: string
  admin: string
}

/** The database server of one tenant's home. Each call throws if the server is unreachable, and may be repeated. */
export interface HomeServer {
  /** Creates the home's database and revokes the rights of all users. `created` is called in between. */
  prepare(created: () => void | Promise<void>): Promise<void>
  /**
   * Creates roles, passwords and schema. @returns `whole` if they were created with the system collections, in one
   * transaction
   */
  create(tenantId: string, passwords: HomePasswords): Promise<'whole' | 'to be migrated'>
  /**
   * Restores roles, passwords and rights of a home that has been in use. It checks the schema in the same transaction
   * and never creates an empty one.
   */
  repair(tenantId: string, passwords: HomePasswords): Promise<'to be migrated' | 'missing'>
  /**
   * Migrates the service's tables to the newest version and repairs them, as the home's system role and never as
   * superuser (see `home-sql.ts`).
   * @throws HomeError HomeDamaged if a violation could not be repaired
   */
  migrate(tenantId: string): Promise<HomeReport>
  /**
   * Logs in over TCP as the runtime does, and checks that the service's tables are complete.
   * @throws HomeError HomeDamaged if they are not
   */
  check(tenantId: string, password: string): Promise<void>
  /** Blocks the home's logins and ends their sessions. */
  endSessions(tenantId: string): Promise<void>
  /** Removes the home with its content, and its roles. An absent one is not an error. */
  drop(tenantId: string): Promise<void>
}
