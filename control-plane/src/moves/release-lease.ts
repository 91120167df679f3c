// Ends the lease with which a move lets no function begin by itself.
import { asAdmin, type SharedLocation } from '../backups/index.ts'
import { identifier, literal } from '../platform/identifiers.ts'
import { releaseLeaseSql } from './move-sql.ts'

/** Releases the lease of a move, if the home and the lease exist. */
export async function releaseLease(location: SharedLocation, tenantId: string, signal: AbortSignal): Promise<void> {
  const dispatcher = literal(`${identifier(tenantId)}.function_dispatcher`)
  await asAdmin(location, signal, async (client) => {
    await client.query('set session_replication_role = replica')
    await client.query(
      `do $do$ begin if to_regclass(${dispatcher}) is not null then ${releaseLeaseSql(tenantId)}; end if; end $do$`,
    )
  })
}
