// The server of one tenant's home, as the reconciler uses it: a database that many tenants share, or a server of its own.
// Every call may be repeated after an interruption at any point.

import type { DropProgress } from './drop-home.ts'
import type { HomeReport } from './home-report.ts'

/** Passwords of the logins of the tenant's runtime and of schema reloads, as plain text. */
export interface ServicePasswords {
  runtime: string
  ddl: string
}

/** Passwords of a home's three logins, as plain text. */
export interface HomePasswords extends ServicePasswords {
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
   * Logs in as the runtime does, and checks that the service's tables are complete.
   * @throws HomeError HomeDamaged if they are not
   */
  check(tenantId: string, password: string): Promise<void>
  /**
   * Opens or closes the tenant's SQL login (`database_url`), and ends its sessions before. The SQL login of a dedicated
   * tenant ends with its container.
   */
  setSqlLogin(tenantId: string, isOpen: boolean): Promise<void>
  /**
   * Sets the password of the tenant's SQL login (`database_url`), and ends all its sessions. A closed login stays
   * closed.
   */
  setSqlPassword(tenantId: string, password: string): Promise<void>
  /** Sets the passwords of the services' logins, in one transaction. Their sessions continue. */
  setServicePasswords(tenantId: string, passwords: ServicePasswords): Promise<void>
  /** Blocks the home's logins and ends their sessions. */
  endSessions(tenantId: string): Promise<void>
  /** Lets the logins in again that `endSessions` has blocked, with these passwords. */
  openLogins(tenantId: string, passwords: HomePasswords): Promise<void>
  /**
   * Removes the home with its content, and its roles, part by part. An absent one is not an error. After an
   * interruption, the next call continues.
   */
  drop(tenantId: string, progress: DropProgress): Promise<void>
  /** Removes one of a home's schemas with its content. An absent one is not an error. */
  dropSchema(schema: string, progress: DropProgress): Promise<void>
}
