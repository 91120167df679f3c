// Gives a restored home's service tables to the system role and brings them to the newest version. What pg_restore makes
// belongs to the home's owner, whoever owned it where the backup was taken.
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

/** The owner of everything changes; nothing else does. */
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

/** Grants to the owner were lost when the tables were its own. A home of a version that knew them has a record of them. */
export async function regrant(location: HomeLocation, homeId: string, signal: AbortSignal): Promise<void> {
  await asSystem(location, homeId, (login) => asLogin(location, login, regrantSql(homeId), signal), signal)
}

/** @param tenantId whose the rows are @throws HomeError where something could not be repaired */
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

/** Calls `work` with the home's system login, which is open for so long. */
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

/** Nothing where there is no ledger, which a tenant's own backup of an older version may lack. */
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
