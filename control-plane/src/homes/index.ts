// The public interface of `homes/`.
export { createDedicatedHome, dedicatedDatabase, readOnlyDatabase } from './dedicated-home.ts'
export { HomeDatabases } from './home-databases.ts'
export { loginUrl } from './home-logins.ts'
export {
  appliedVersionSql,
  firstMigrationsSql as firstHomeSql,
  type HomeMigration,
  loadHomeMigrations,
  migrateHomeSql,
  migrationsFingerprint,
  violationsSql,
  structureTable,
  structureTables,
  systemParts,
} from './home-migrations.ts'
export { damaged, HomeError, readReport } from './home-report.ts'
export {
  homeRoles,
  loaderRole,
  readerRole,
  replacedSchema,
  restoredSchema,
  reverseSchema,
  type HomeRole,
} from './home-roles.ts'
export type { HomeServer, ServicePasswords } from './home-server.ts'
export {
  adoptHomeSql,
  closeSchemaSql,
  closeSystemLoginSql,
  createHomeSql,
  grantDefaultsSql,
  homeConnectionLimits,
  noLoginSql,
  openSystemLoginSql,
  schemaRightsSql,
  tenantsGroup,
} from './home-sql.ts'
export { defaultMaxObjects } from './object-limit.ts'
export { prepareSharedDatabaseSql } from './prepare-database.ts'
export { isVerifierOf, newVerifiers, oneTimePassword, scramVerifier, verifierOf } from './scram.ts'
export type { ChangedLogins, ServiceLogin } from './service-login-sql.ts'
export { setSqlLoginSql } from './sql-login-sql.ts'
