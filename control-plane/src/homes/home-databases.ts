// Creates, checks and drops homes on a region's shared Postgres. Every call may be repeated at any point.
import pg from 'pg'
import { closeOpenDatabases, ensureClosedDatabase } from '../platform/closed-databases.ts'
import type { HomePasswords, HomeServer } from './home-server.ts'
import {
  closeSystemLoginSql,
  createNewHomeSql,
  dropHomeSql,
  endOldestTransactionSql,
  endSessionsSql,
  homeConnectionLimits,
  restoreHomeRolesSql,
  noLoginSql,
  openSystemLoginSql,
  prepareSharedDatabaseSql,
  schemaExists,
  schemaMissing,
} from './home-sql.ts'
import { loginUrl } from './home-logins.ts'
import {
  appliedVersionSql,
  firstMigrationsSql,
  migrateHomeSql,
  ownTarget,
  violationsSql,
  systemParts,
  type HomeMigration,
} from './home-migrations.ts'
import { damaged, readReport, type HomeReport } from './home-report.ts'
import { newVerifiers, oneTimePassword } from './scram.ts'

/** The homes of a region's shared Postgres, in databases that many tenants share. */
export class HomeDatabases {
  readonly #postgresUrl: string
  readonly #migrations: HomeMigration[]
  readonly #pools = new Map<string, pg.Pool>()
  readonly #prepared = new Map<string, Promise<void>>()

  /** @param postgresUrl the superuser's URL of the server's database `postgres` */
  constructor(postgresUrl: string, migrations: HomeMigration[]) {
    this.#postgresUrl = postgresUrl
    this.#migrations = migrations
  }

  /** Returns the server of homes in one database. */
  in(database: string): HomeServer {
    return {
      prepare: (created) => this.ensureDatabase(database, created),
      create: (tenantId, passwords) => this.createHome(database, tenantId, passwords),
      repair: (tenantId, passwords) => this.repairHome(database, tenantId, passwords),
      migrate: (tenantId) => this.migrateHome(database, tenantId),
      check: (tenantId, password) => this.checkLogin(database, tenantId, password),
      endSessions: (tenantId) => this.endSessions(database, tenantId),
      drop: (tenantId) => this.dropHome(database, tenantId),
    }
  }

  /**
   * Creates the shared database if it is missing, and revokes the rights of all users. `created` is called in between.
   */
  async ensureDatabase(database: string, created: () => void | Promise<void>): Promise<void> {
    let preparing = this.#prepared.get(database)
    if (preparing === undefined) {
      preparing = this.#prepare(database, created)
      this.#prepared.set(database, preparing)
      // A failure must not be cached.
      preparing.catch(() => this.#prepared.delete(database))
    }
    await preparing
  }

  async #prepare(database: string, created: () => void | Promise<void>): Promise<void> {
    await ensureClosedDatabase(this.#pool('postgres'), database, created)
    await this.#pool(database).query(prepareSharedDatabaseSql(database))
  }

  /**
   * Creates roles, passwords and schema. @returns `whole` if they were created with the system collections, in one
   * transaction
   */
  async createHome(database: string, tenantId: string, passwords: HomePasswords): Promise<'whole' | 'to be migrated'> {
    try {
      await this.#pool(database).query(
        createNewHomeSql(
          tenantId,
          newVerifiers(passwords),
          homeConnectionLimits,
          firstMigrationsSql(ownTarget(tenantId), this.#migrations),
        ),
      )
      return 'whole'
    } catch (error) {
      if (!isState(error, schemaExists) || (await this.repairHome(database, tenantId, passwords)) === 'missing')
        throw error
      return 'to be migrated'
    }
  }

  /** Restores roles, passwords and rights of a home that has been in use. */
  async repairHome(
    database: string,
    tenantId: string,
    passwords: HomePasswords,
  ): Promise<'to be migrated' | 'missing'> {
    try {
      await this.#pool(database).query(
        restoreHomeRolesSql(tenantId, newVerifiers(passwords), homeConnectionLimits, systemParts(this.#migrations)),
      )
      return 'to be migrated'
    } catch (error) {
      if (!isState(error, schemaMissing)) throw error
      return 'missing'
    }
  }

  /** Migrates a home as its system role, never as superuser (see `home-sql.ts`). @throws HomeError HomeDamaged */
  async migrateHome(database: string, tenantId: string): Promise<HomeReport> {
    const { password, verifier } = oneTimePassword()
    const pool = this.#pool(database)
    await pool.query(openSystemLoginSql(tenantId, verifier))
    try {
      return await this.#asLogin(database, tenantId, 'system', password, async (client) => {
        const applied = await client
          .query<{ version: number | null }>(appliedVersionSql(tenantId))
          .catch(unless(undefinedTable))
        const results: unknown = await client.query(
          migrateHomeSql(ownTarget(tenantId), this.#migrations, applied?.rows[0]?.version ?? undefined),
        )
        return readReport(reportOf(results))
      })
    } finally {
      await pool.query(closeSystemLoginSql(tenantId))
    }
  }

  /** Logs in over TCP as the runtime does, and checks that the home is complete. @throws HomeError HomeDamaged */
  async checkLogin(database: string, tenantId: string, password: string): Promise<void> {
    const { rows } = await this.#asLogin(database, tenantId, 'runtime', password, (client) =>
      client.query<{ problem: string }>(violationsSql(tenantId)),
    )
    if (rows.length > 0) throw damaged(rows.map(({ problem }) => problem))
  }

  async #asLogin<T>(
    database: string,
    tenantId: string,
    login: 'system' | 'runtime',
    password: string,
    work: (client: pg.Client) => Promise<T>,
  ): Promise<T> {
    const client = new pg.Client({
      connectionString: loginUrl(this.#postgresUrl, database, tenantId, login, password),
      application_name: login === 'system' ? 'tenantry-home-migrations' : 'tenantry-check',
      connectionTimeoutMillis: 5_000,
      // A tenant may hold locks in its home, which must not block the others.
      ...(login === 'system' ? { statement_timeout: 20_000, lock_timeout: 2_000 } : { query_timeout: 5_000 }),
    })
    client.on('error', () => undefined)
    await client.connect()
    try {
      return await work(client)
    } finally {
      await client.end()
    }
  }

  /** Blocks a home's logins and ends their sessions. A database that does not exist has none. */
  async endSessions(database: string, tenantId: string): Promise<void> {
    await this.#ifDatabase(database, async (pool) => {
      // Without LOGIN no session can begin while the home is dropped.
      await pool.query(noLoginSql(tenantId))
      await pool.query(endSessionsSql(tenantId))
    })
  }

  /** Removes a home's schema with its content, and its roles. An absent one is not an error. */
  async dropHome(database: string, tenantId: string): Promise<void> {
    await this.#ifDatabase(database, async (pool) => {
      await pool.query(dropHomeSql(tenantId))
    })
  }

  /**
   * Closes all databases of the server to logins without a grant, and again revokes from the databases of homes the
   * rights that their tenants may not have.
   * @returns the names of the databases that were open
   */
  async closeDatabases(): Promise<string[]> {
    const server = this.#pool('postgres')
    const open = await closeOpenDatabases(server)
    const { rows } = await server.query<{ name: string }>(
      `select datname as name from pg_database where datname ~ '^tenantry_homes_[0-9]+$'`,
    )
    for (const { name } of rows) await this.#prepare(name, () => undefined)
    return open
  }

  /**
   * Frees the queue of NOTIFY, which all databases of the server share. It fills while a listening session stays in a
   * transaction. Above half, this ends tenants' transactions, the oldest first, until less is in use.
   * @returns the roles of the sessions that it ended
   */
  async freeNotificationQueue(): Promise<string[]> {
    const ended: string[] = []
    for (;;) {
      const { rows } = await this.#pool('postgres').query<{ role: string }>(endOldestTransactionSql)
      if (rows[0] === undefined) return ended
      ended.push(rows[0].role)
    }
  }

  /** Ends all connections to the server. */
  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.end()))
  }

  /** Works in a database, unless it was never created and so holds nothing to remove. */
  async #ifDatabase(database: string, work: (pool: pg.Pool) => Promise<void>): Promise<void> {
    const { rows } = await this.#pool('postgres').query('select 1 from pg_database where datname = $1', [database])
    if (rows.length > 0) await work(this.#pool(database))
  }

  #pool(database: string): pg.Pool {
    let pool = this.#pools.get(database)
    if (pool === undefined) {
      const url = new URL(this.#postgresUrl)
      url.pathname = `/${database}`
      pool = new pg.Pool({
        connectionString: url.href,
        max: database === 'postgres' ? 2 : 8,
        idleTimeoutMillis: 10_000,
        connectionTimeoutMillis: 5_000,
        statement_timeout: 60_000,
        application_name: 'tenantry-homes',
      })
      pool.on('error', () => undefined)
      this.#pools.set(database, pool)
    }
    return pool
  }
}

const undefinedTable = '42P01'

/** Returns the lines of the last of several results. */
function reportOf(results: unknown): string[] {
  const last: unknown = Array.isArray(results) ? results.at(-1) : results
  return last instanceof pg.Result ? last.rows.map((row: { report?: unknown }) => String(row.report)) : []
}

function unless(...codes: string[]) {
  return (error: unknown): undefined => {
    if (!isState(error, ...codes)) throw error
    return undefined
  }
}

function isState(error: unknown, ...codes: string[]): boolean {
  return error instanceof pg.DatabaseError && codes.includes(error.code ?? '')
}
