// The public interface of `homes/`.
export { createDedicatedHome, dedicatedDatabase } from './dedicated-home.ts'
export { HomeDatabases } from './home-databases.ts'
export { loginUrl } from './home-logins.ts'
export {
  appliedVersionSql,
  type HomeMigration,
  loadHomeMigrations,
  migrateHomeSql,
  migrationsFingerprint,
  violationsSql,
  structureTable,
  systemParts,
} from './home-migrations.ts'
export { damaged, HomeError, readReport } from './home-report.ts'
export { homeRoles } from './home-roles.ts'
export type { HomeServer } from './home-server.ts'
export {
  adoptHomeSql,
  closeSystemLoginSql,
  createHomeSql,
  homeConnectionLimits,
  openSystemLoginSql,
  prepareSharedDatabaseSql,
  tenantsGroup,
} from './home-sql.ts'
export { newVerifiers, oneTimePassword, scramVerifier } from './scram.ts'
