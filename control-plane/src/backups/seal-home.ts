// Gives a restored home's service tables to the system role and applies the newest migrations. The home's owner owns
// everything that pg_restore creates, whichever role owned it before.
import {
  adoptHomeSql,
  closeSystemLoginSql,
  openSystemLoginSql,
  homeRoles,
  appliedVersionSql,
  migrateHomeSql,
  systemParts,
  type HomeMigration,
  readReport,
  oneTimePassword,
} from '../homes/index.ts'
import { identifier, literal } from '../platform/identifiers.ts'
import { asLogin, asSuperuser, type HomeLocation } from './home-location.ts'
import type { Login } from './login.ts'

/** Changes the owner of the service's objects, and nothing else. */
export async function adoptHome(
  location: HomeLocation,
  homeId: string,
  migrations: readonly HomeMigration[],
  signal: AbortSignal,
): Promise<void> {
  await asSuperuser(
    location,
    location.database,
    `begin;\n${adoptHomeSql(homeId, systemParts(migrations))};\ncommit`,
    signal,
  )
}

/**
 * Restores the grants to the owner, which were lost while it owned the tables. Homes since that version have a record
 * of them.
 */
export async function regrant(location: HomeLocation, homeId: string, signal: AbortSignal): Promise<void> {
  await asSystem(location, homeId, (login) => asLogin(location, login, regrantSql(homeId), signal), signal)
}

/**
 * Applies the migrations.
 * @param ids the home, and the tenant whose rows it has
 * @throws HomeError when something could not be repaired
 */
export async function migrateRestored(
  location: HomeLocation,
  ids: { homeId: string; tenantId: string },
  migrations: readonly HomeMigration[],
  signal: AbortSignal,
): Promise<void> {
  await asSystem(
    location,
    ids.homeId,
    async (login) => {
      const applied = await asLogin(location, login, optionalVersionSql(ids.homeId), signal)
      const version = applied.trim() === '' ? undefined : Number(applied)
      readReport((await asLogin(location, login, migrateHomeSql(ids, migrations, version), signal, [])).split('\n'))
    },
    signal,
  )
}

/** Calls `work` with the home's system login, which is open only meanwhile. */
export async function asSystem<T>(
  location: HomeLocation,
  homeId: string,
  work: (login: Login) => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  const { password, verifier } = oneTimePassword()
  await asSuperuser(location, location.database, `begin;\n${openSystemLoginSql(homeId, verifier)};\ncommit`, signal)
  try {
    return await work({ role: homeRoles(homeId).system, password })
  } finally {
    await asSuperuser(location, location.database, closeSystemLoginSql(homeId), signal)
  }
}

/**
 * Returns a query for the version of the home. Without a table of migrations, as in an older backup, it returns no row.
 */
function optionalVersionSql(homeId: string): string {
  const location = literal(`${identifier(homeId)}.home_migrations`)
  return (
    `select to_regclass(${location}) is not null as has_ledger \\gset\n` +
    `\\if :has_ledger\n${appliedVersionSql(homeId)};\n\\endif\nselect where false`
  )
}

function regrantSql(homeId: string): string {
  const { owner } = homeRoles(homeId)
  return `set search_path = '';
do $regrant$
declare
  r record;
begin
  for r in
    select split_part(name, '.', 1) as relation, definition from ${identifier(homeId)}.home_structure
    where kind = 'privilege' and split_part(name, '.', 2) = '_owner'
  loop
    execute format('grant %s on ${identifier(homeId)}.%I to ${identifier(owner)}', r.definition, r.relation);
  end loop;
end $regrant$`
}
