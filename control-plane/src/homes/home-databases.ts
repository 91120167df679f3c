// Creates, checks and drops homes on a region's shared Postgres. Every call may be repeated at any point.
import pg from 'pg'
import { closeOpenDatabases, ensureClosedDatabase, type OpenRights } from '../platform/closed-databases.ts'
import { closePublicFunctions } from '../platform/public-functions.ts'
import { connected, type ConnectionConfig } from '../platform/single-connection.ts'
import { isState } from '../platform/sql-state.ts'
import { hrefOf, inDatabase, SuperuserPool, type PostgresUrl } from '../platform/superuser-url.ts'
import { dropHome, dropSchema, type DropProgress } from './drop-home.ts'
import type { HomePasswords, HomeServer } from './home-server.ts'
import {
  closeSystemLoginSql,
  createNewHomeSql,
  endSessionsSql,
  homeConnectionLimits,
  restoreHomeRolesSql,
  noLoginSql,
  openLoginsSql,
  openSystemLoginSql,
  schemaExists,
  schemaMissing,
} from './home-sql.ts'
import { loginUrl } from './home-logins.ts'
import { documentSizesSql, measuredFiles } from './document-size-sql.ts'
import {
  appliedVersionSql,
  firstMigrationsSql,
  migrateHomeSql,
  ownTarget,
  structureSql,
  violationsSql,
  systemParts,
  type HomeMigration,
  type StructurePart,
} from './home-migrations.ts'
import { damaged, readReport, type HomeReport } from './home-report.ts'
import { defaultMaxObjects } from './object-limit.ts'
import { prepareHomesSql } from './prepare-database.ts'
import { newVerifiers, oneTimePassword, verifierOf } from './scram.ts'
import {
  changedLoginsSql,
  loginMarkSql,
  setPasswordSql,
  setServicePasswordsSql,
  type ChangedLogins,
  type ServiceLogin,
} from './service-login-sql.ts'
import {
  endAdminSessionsSql,
  endClosedSessionsSql,
  setSqlLoginSql,
  setSqlPasswordSql,
  sqlLoginsSql,
} from './sql-login-sql.ts'

/**
 * A session has plans for the functions of each home in which it has worked, and examines all of them after each statement
 * that changes a structure.
 */
const maxConnectionUses = 40

/** The homes of a region's shared Postgres, in databases that many tenants share. */
export class HomeDatabases {
  readonly #postgresUrl: PostgresUrl
  readonly #migrations: HomeMigration[]
  readonly #maxObjects: number
  readonly #pools = new Map<string, pg.Pool>()
  readonly #prepared = new Map<string, Promise<void>>()
  /** The structure of a new home, as the server describes it. */
  #structure: StructurePart[] | undefined

  /**
   * @param postgresUrl the superuser's URL of the server's database `postgres`
   * @param maxObjects maximum number of a tenant's own relations in its home, and of its other objects
   */
  constructor(postgresUrl: PostgresUrl, migrations: HomeMigration[], maxObjects = defaultMaxObjects) {
    this.#postgresUrl = postgresUrl
    this.#migrations = migrations
    this.#maxObjects = maxObjects
  }

  /** Returns the server of homes in one database. */
  in(database: string): HomeServer {
    return {
      prepare: (created) => this.ensureDatabase(database, created),
      create: (tenantId, passwords) => this.createHome(database, tenantId, passwords),
      repair: (tenantId, passwords) => this.repairHome(database, tenantId, passwords),
      migrate: (tenantId) => this.migrateHome(database, tenantId),
      check: (tenantId, password) => this.checkLogin(database, tenantId, password),
      setSqlLogin: (tenantId, isOpen) => this.setSqlLogin(tenantId, isOpen),
      setSqlPassword: (tenantId, password) => this.setSqlPassword(tenantId, password),
      setServicePasswords: async (tenantId, passwords) => {
        await this.#pool('postgres').query(setServicePasswordsSql(tenantId, passwords))
      },
      endSessions: (tenantId) => this.endSessions(database, tenantId),
      openLogins: async (tenantId, passwords) => {
        await this.#pool('postgres').query(openLoginsSql(tenantId, newVerifiers(passwords)))
      },
      drop: (tenantId, progress) => this.dropHome(database, tenantId, progress),
      dropSchema: (schema, progress) => this.#ifDatabase(database, (pool) => dropSchema(pool, schema, progress)),
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
    await this.#pool(database).query(prepareHomesSql(database, this.#maxObjects))
  }

  /**
   * Creates roles, passwords and schema. @returns `whole` if they were created with the system collections, in one
   * transaction
   */
  async createHome(database: string, tenantId: string, passwords: HomePasswords): Promise<'whole' | 'to be migrated'> {
    const migrations = firstMigrationsSql(ownTarget(tenantId), this.#migrations, this.#structure)
    const sql = createNewHomeSql(tenantId, newVerifiers(passwords), homeConnectionLimits, migrations)
    try {
      if (this.#structure !== undefined) await this.#pool(database).query(sql)
      else {
        const results: unknown = await this.#pool(database).query(`${sql};\n${structureSql(tenantId)}`)
        this.#structure = (results as pg.QueryResult<StructurePart>[]).at(-1)?.rows
      }
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

  /** Logs in as the runtime does, and checks that the home is complete. @throws HomeError HomeDamaged */
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
    const config = {
      connectionString: loginUrl(hrefOf(this.#postgresUrl), database, tenantId, login, password),
      application_name: login === 'system' ? 'tenantry-home-migrations' : 'tenantry-check',
      // A tenant may hold locks in its home, which must not block the others.
      ...(login === 'system' ? { statement_timeout: 20_000, lock_timeout: 2_000 } : { query_timeout: 5_000 }),
    }
    return connected(config, work)
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
  async dropHome(database: string, tenantId: string, progress: DropProgress): Promise<void> {
    await this.#ifDatabase(database, () => dropHome((name) => this.#pool(name), database, tenantId, progress))
  }

  /**
   * Closes all databases of the server to logins without a grant, and again revokes from PUBLIC what no tenant may do.
   * It also installs the limit of objects in databases of homes that lack it.
   */
  async closeDatabases(): Promise<OpenRights> {
    const server = this.#pool('postgres')
    const databases = await closeOpenDatabases(server)
    const { rows } = await server.query<{ name: string; holds_homes: boolean }>(
      `select datname as name, datname ~ '^tenantry_homes_[0-9]+$' as holds_homes from pg_database
       where datallowconn and datconnlimit <> -2 order by datname`,
    )
    const functions: string[] = []
    for (const { name, holds_homes } of rows) {
      const open = await this.#closeFunctions(name)
      functions.push(...open.map((signature) => `${name}: ${signature}`))
      if (holds_homes) await this.#prepare(name, () => undefined)
    }
    return { databases, functions }
  }

  /** Uses a connection of its own, because an idle one would block `create database` from `template1`. */
  async #closeFunctions(database: string): Promise<string[]> {
    return connected(this.#connection(database), closePublicFunctions)
  }

  /** Returns which of the tenants have an SQL login on this server, and those whose login is closed. */
  async sqlLogins(tenantIds: readonly string[]): Promise<{ tenantId: string; isOpen: boolean }[]> {
    const pool = this.#pool('postgres')
    return (await pool.query<{ tenantId: string; isOpen: boolean }>(sqlLoginsSql, [[...tenantIds]])).rows
  }

  /** Opens or closes a tenant's SQL login. To close it also ends its sessions. */
  async setSqlLogin(tenantId: string, isOpen: boolean): Promise<void> {
    const pool = this.#pool('postgres')
    if (!isOpen) await pool.query(endAdminSessionsSql(tenantId))
    await pool.query(setSqlLoginSql(tenantId, isOpen))
    if (!isOpen) await pool.query(endAdminSessionsSql(tenantId))
  }

  /** Sets the password of a tenant's SQL login, and ends all its sessions. */
  async setSqlPassword(tenantId: string, password: string): Promise<void> {
    const pool = this.#pool('postgres')
    // A session could hold the lock of its own role's row.
    await pool.query(endAdminSessionsSql(tenantId))
    await pool.query(setSqlPasswordSql(tenantId, verifierOf(password)))
    await pool.query(endAdminSessionsSql(tenantId))
  }

  /** Returns the services' logins that may have changed after the call that returned `mark`; without a mark, all of them. */
  async changedLogins(mark: string | undefined): Promise<ChangedLogins> {
    const pool = this.#pool('postgres')
    const [next] = (await pool.query<{ mark: string }>(loginMarkSql)).rows
    const { rows } = await pool.query<ServiceLogin>(changedLoginsSql, [mark ?? null])
    return { logins: rows, mark: next?.mark ?? '' }
  }

  /** Sets the password of a service's login. An absent role is not an error. */
  async setPassword(tenantId: string, login: ServiceLogin['login'], password: string): Promise<void> {
    await this.#pool('postgres').query(setPasswordSql(tenantId, login, verifierOf(password)))
  }

  /** Returns the bytes of the documents of tenants in one database. @param limitBytes smallest size that the result must show */
  async documentBytes(
    database: string,
    tenantIds: readonly string[],
    limitBytes: number,
  ): Promise<ReadonlyMap<string, number>> {
    const { rows } = await this.#pool(database).query<{ tenantId: string; bytes: number }>(documentSizesSql, [
      tenantIds,
      measuredFiles(2 * limitBytes),
    ])
    return new Map(rows.map(({ tenantId, bytes }) => [tenantId, bytes]))
  }

  /** Ends the sessions of closed SQL logins. */
  async endClosedSessions(): Promise<void> {
    await this.#pool('postgres').query(endClosedSessionsSql)
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
      const { connectionString, ...config } = this.#connection(database)
      pool = new SuperuserPool(connectionString, {
        ...config,
        // A connection to a server that is just ending may never be answered.
        connectionTimeoutMillis: 5_000,
        max: database === 'postgres' ? 2 : 8,
        maxUses: maxConnectionUses,
        idleTimeoutMillis: 10_000,
      })
      pool.on('error', () => undefined)
      this.#pools.set(database, pool)
    }
    return pool
  }

  #connection(database: string): ConnectionConfig {
    return {
      connectionString: inDatabase(this.#postgresUrl, database),
      statement_timeout: 60_000,
      // The router that the connection passes may be gone with its host.
      query_timeout: 65_000,
      application_name: 'tenantry-homes',
    }
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
