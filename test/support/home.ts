// Creates a tenant's home in a test Postgres with the control plane's own SQL.
import { randomBytes } from 'node:crypto'
import type { Home } from '@tenantry/contract'
import { HomeDatabases } from '#control-plane/homes/home-databases.ts'
import type { HomeReport } from '#control-plane/homes/home-report.ts'
import {
  firstMigrationsSql,
  loadHomeMigrations,
  ownTarget,
  type HomeMigration,
} from '#control-plane/homes/home-migrations.ts'
import { createNewHomeSql } from '#control-plane/homes/home-sql.ts'
import { homeRoles } from '#control-plane/homes/home-roles.ts'
import { scramVerifier } from '#control-plane/homes/scram.ts'
import { query, type TestPostgres } from './postgres.ts'

export interface TestHome extends Home {
  tenantId: string
  /** The tenant's own `database_url`. */
  adminUrl: string
}

export const migrationsDirectory = new URL('../../tenant-runtime/migrations/', import.meta.url).pathname

/** @param migrations those of the home; by default all */
export async function createHome(postgres: TestPostgres, migrations?: HomeMigration[]): Promise<TestHome> {
  const tenantId = `t_${randomBytes(10).toString('hex')}`
  const roles = homeRoles(tenantId)
  const passwords = { runtime: secret(), ddl: secret(), admin: secret() }
  const verifiers = {
    runtime: scramVerifier(passwords.runtime, randomBytes(16)),
    ddl: scramVerifier(passwords.ddl, randomBytes(16)),
    admin: scramVerifier(passwords.admin, randomBytes(16)),
  }
  const applied = migrations ?? (await loadHomeMigrations(migrationsDirectory))
  const first = firstMigrationsSql(ownTarget(tenantId), applied)
  await query(postgres.url('homes'), createNewHomeSql(tenantId, verifiers, { runtime: 50, ddl: 4, admin: 10 }, first))
  const url = (role: string, password: string) => `postgresql://${role}:${password}@127.0.0.1:${postgres.port}/homes`
  return {
    tenantId,
    schema: tenantId,
    url: url(roles.runtime, passwords.runtime),
    ddl_url: url(roles.ddl, passwords.ddl),
    admin_url: url(roles.admin, passwords.admin),
    adminUrl: url(roles.admin, passwords.admin),
  }
}

function secret(): string {
  return randomBytes(24).toString('base64url')
}

/** Migrates a home as the control plane does when it is outdated or damaged. @param postgresUrl superuser's URL of any database */
export async function migrateHome(postgresUrl: string, tenantId: string): Promise<HomeReport> {
  const homes = new HomeDatabases(postgresUrl, await loadHomeMigrations(migrationsDirectory))
  try {
    return await homes.migrateHome('homes', tenantId)
  } finally {
    await homes.close()
  }
}
