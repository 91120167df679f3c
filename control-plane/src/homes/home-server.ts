// Where one tenant's home is, as the reconciler uses it: in a database that many share, or on a server of its own.
// Every call may be repeated at any point of an earlier, interrupted one.

import type { HomeReport } from './home-report.ts'

/** Passwords of a home's three logins, as plain text. */
export interface HomePasswords {
  runtime: string
  ddl: string
  admin: string
}

/**
 * The database server that one tenant's home is on. Each call throws when the server can't be reached, and may be
 * repeated.
 */
export interface HomeServer {
  /** Makes the database that holds the home and takes everybody's rights from it. `created` is told in between. */
  prepare(created: () => void | Promise<void>): Promise<void>
  /** Roles, passwords and schema of a new one. @returns `whole` when it was made with its system collections, in one transaction */
  create(tenantId: string, passwords: HomePasswords): Promise<'whole' | 'to be migrated'>
  /** Roles, passwords and rights of one that has been in use; looked for in the same transaction, so that no empty one is made. */
  repair(tenantId: string, passwords: HomePasswords): Promise<'to be migrated' | 'missing'>
  /**
   * Brings the service's tables to the newest version and repairs them; as the home's system role, never as superuser (see `home-sql.ts`).
   * @throws HomeError HomeDamaged where something could not be repaired
   */
  migrate(tenantId: string): Promise<HomeReport>
  /**
   * Logs in over TCP as the runtime does, and checks whether the service's tables are whole.
   * @throws HomeError HomeDamaged where they are not
   */
  check(tenantId: string, password: string): Promise<void>
  /** Keeps the home's logins out and ends their sessions. */
  endSessions(tenantId: string): Promise<void>
  /** Removes the home with all that it holds, and its roles. What is absent is no error. */
  drop(tenantId: string): Promise<void>
}
