// Makes, checks and drops homes on a region's shared Postgres. Safe to repeat at any point.
import pg from 'pg'
import type { HomePasswords, HomeServer } from './home-server.ts'
import { createNewHomeSql, dropHomeSql, endSessionsSql, homeConnectionLimits, mendHomeSql, noLoginSql, prepareSharedDatabaseSql, schemaExists, schemaMissing } from './home-sql.ts'
import { loginUrl } from './home-logins.ts'
import { firstMigrationsSql, migrateHomeSql, type HomeMigration } from './home-migrations.ts'
import { identifier } from './identifiers.ts'
import { newVerifiers } from './scram.ts'

export class HomeDatabases {
  readonly #postgresUrl: string
  readonly #migrations: HomeMigration[]
  readonly #pools = new Map<string, pg.Pool>()
  readonly #prepared = new Map<string, Promise<void>>()

  /** `postgresUrl` is the superuser's URL of the server's database `postgres`. */
  constructor(postgresUrl: string, migrations: HomeMigration[]) {
    this.#postgresUrl = postgresUrl
    this.#migrations = migrations
  }

  /** The home in one of the server's databases. */
  in(database: string): HomeServer {
    return {
      prepare: (created) => this.ensureDatabase(database, created),
      create: (tenantId, passwords) => this.createHome(database, tenantId, passwords),
      mend: (tenantId, passwords) => this.mendHome(database, tenantId, passwords),
      migrate: (tenantId, ddlPassword) => this.migrateHome(database, tenantId, ddlPassword),
      check: (tenantId, password) => this.checkLogin(database, tenantId, password),
      endSessions: (tenantId) => this.endSessions(database, tenantId),
      drop: (tenantId) => this.dropHome(database, tenantId),
    }
  }

  /** Creates the shared database when it is missing and takes everybody's rights from it. `created` is told in between. */
  async ensureDatabase(database: string, created: () => void | Promise<void>): Promise<void> {
    let preparing = this.#prepared.get(database)
    if (preparing === undefined) {
      preparing = this.#prepare(database, created)
      this.#prepared.set(database, preparing)
      // A failure must not be remembered.
      preparing.catch(() => this.#prepared.delete(database))
    }
    await preparing
  }

  async #prepare(database: string, created: () => void | Promise<void>): Promise<void> {
    const server = this.#pool('postgres')
    const { rows } = await server.query<{ datconnlimit: number }>('select datconnlimit from pg_database where datname = $1', [database])
    // -2 marks a database whose DROP was interrupted: nobody can enter it, and it must be dropped again.
    if (rows[0]?.datconnlimit === -2) await server.query(`drop database ${identifier(database)}`)
    if (rows[0] === undefined || rows[0].datconnlimit === -2) {
      await server.query(`create database ${identifier(database)} template template0`).catch(unless('42P04', '23505'))
    }
    await created()
    for (const shut of ['postgres', 'template1']) await server.query(`revoke connect on database ${identifier(shut)} from public`)
    await this.#pool(database).query(prepareSharedDatabaseSql(database))
  }

  /** Roles, passwords and schema. @returns `whole` when it was made with its system collections, in one transaction */
  async createHome(database: string, tenantId: string, passwords: HomePasswords): Promise<'whole' | 'to be migrated'> {
    try {
      await this.#pool(database).query(createNewHomeSql(tenantId, newVerifiers(passwords), homeConnectionLimits, firstMigrationsSql(tenantId, this.#migrations)))
      return 'whole'
    } catch (error) {
      if (!isState(error, schemaExists) || (await this.mendHome(database, tenantId, passwords)) === 'missing') throw error
      return 'to be migrated'
    }
  }

  /** Roles, passwords and rights of one that has been in use. */
  async mendHome(database: string, tenantId: string, passwords: HomePasswords): Promise<'to be migrated' | 'missing'> {
    try {
      await this.#pool(database).query(mendHomeSql(tenantId, newVerifiers(passwords), homeConnectionLimits))
      return 'to be migrated'
    } catch (error) {
      if (!isState(error, schemaMissing)) throw error
      return 'missing'
    }
  }

  /** System collections; as the home's own ddl login, never as superuser (see `home-sql.ts`). */
  async migrateHome(database: string, tenantId: string, ddlPassword: string): Promise<void> {
    const client = new pg.Client({
      connectionString: loginUrl(this.#postgresUrl, database, tenantId, 'ddl', ddlPassword),
      application_name: 'tenantry-home-migrations',
      connectionTimeoutMillis: 5_000,
      // A tenant may hold locks in its home; that must not hold up the others.
      statement_timeout: 20_000,
      lock_timeout: 2_000,
    })
    client.on('error', () => undefined)
    await client.connect()
    try {
      await client.query(migrateHomeSql(tenantId, this.#migrations))
    } finally {
      await client.end()
    }
  }

  /** Logs in over TCP as the runtime does and asks for something. */
  async checkLogin(database: string, tenantId: string, password: string): Promise<void> {
    const client = new pg.Client({
      connectionString: loginUrl(this.#postgresUrl, database, tenantId, 'runtime', password),
      application_name: 'tenantry-check',
      connectionTimeoutMillis: 5_000,
      query_timeout: 5_000,
    })
    client.on('error', () => undefined)
    await client.connect()
    try {
      await client.query('select 1 from home_migrations limit 1')
    } finally {
      await client.end()
    }
  }

  async endSessions(database: string, tenantId: string): Promise<void> {
    await this.#ifDatabase(database, async (pool) => {
      // Without LOGIN nobody comes back while the home is dropped.
      await pool.query(noLoginSql(tenantId))
      await pool.query(endSessionsSql(tenantId))
    })
  }

  async dropHome(database: string, tenantId: string): Promise<void> {
    await this.#ifDatabase(database, async (pool) => {
      await pool.query(dropHomeSql(tenantId))
    })
  }

  async close(): Promise<void> {
    await Promise.all([...this.#pools.values()].map((pool) => pool.end()))
  }

  /** A database that was never made holds nothing to remove. */
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
        connectionString: url.href, max: database === 'postgres' ? 2 : 8, idleTimeoutMillis: 10_000, connectionTimeoutMillis: 5_000,
        statement_timeout: 60_000, application_name: 'tenantry-homes',
      })
      pool.on('error', () => undefined)
      this.#pools.set(database, pool)
    }
    return pool
  }
}

function unless(...codes: string[]) {
  return (error: unknown) => {
    if (!isState(error, ...codes)) throw error
  }
}

function isState(error: unknown, ...codes: string[]): boolean {
  return error instanceof pg.DatabaseError && codes.includes(error.code ?? '')
}
