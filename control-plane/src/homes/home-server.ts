// Where one tenant's home is, as the reconciler uses it: in a database that many share, or on a server of its own.
// Every call may be repeated at any point of an earlier, interrupted one.

export interface HomePasswords {
  runtime: string
  ddl: string
  admin: string
}

/** What went wrong with a home, in words that may be shown; the cause may not. */
export class HomeError extends Error {}

export interface HomeServer {
  /** Makes the database that holds the home and takes everybody's rights from it. `created` is told in between. */
  prepare(created: () => void | Promise<void>): Promise<void>
  /** Roles, passwords and schema of a new one. @returns `whole` when it was made with its system collections, in one transaction */
  create(tenantId: string, passwords: HomePasswords): Promise<'whole' | 'to be migrated'>
  /** Roles, passwords and rights of one that has been in use; looked for in the same transaction, so that no empty one is made. */
  mend(tenantId: string, passwords: HomePasswords): Promise<'to be migrated' | 'missing'>
  /** System collections; as the home's own ddl login, never as superuser (see `home-sql.ts`). */
  migrate(tenantId: string, ddlPassword: string): Promise<void>
  /** Logs in over TCP as the runtime does and asks for something. */
  check(tenantId: string, password: string): Promise<void>
  endSessions(tenantId: string): Promise<void>
  drop(tenantId: string): Promise<void>
}
