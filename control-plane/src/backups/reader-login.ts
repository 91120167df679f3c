// The login that reads a home for a backup: it can read every row and change nothing. A superuser must not read a
// tenant's tables, because even planning a query runs functions that their indexes use.
import { randomBytes } from 'node:crypto'
import { identifier, literal } from '../platform/identifiers.ts'
import { scramVerifier } from '../homes/index.ts'
import { asSuperuser, type HomeLocation } from './home-location.ts'
import type { Login } from './login.ts'

const role = 'tenantry_reader'

/** Creates the role if it is missing, and sets a new password. */
export async function readerLogin(location: HomeLocation, signal: AbortSignal): Promise<Login> {
  const password = randomBytes(24).toString('base64url')
  const verifier = scramVerifier(password, randomBytes(16))
  const sql = [
    `do $do$ begin create role ${identifier(role)} login; exception when duplicate_object then null; end $do$`,
    `alter role ${identifier(role)} with login nosuperuser nocreatedb nocreaterole noreplication bypassrls` +
      ` connection limit 8 password ${literal(verifier)}`,
    `grant pg_read_all_data to ${identifier(role)}`,
    // The dump and the lists of files read the same snapshot.
    `grant execute on function pg_catalog.pg_export_snapshot() to ${identifier(role)}`,
    `grant connect on database ${identifier(location.database)} to ${identifier(role)}`,
  ]
  await asSuperuser(location, location.database, sql.join(';\n'), signal)
  return { role, password }
}
