// The sessions of a move that read the changes of the source and write them to the copy.
import { asAdmin, asLogin, dropLogin } from '../backups/index.ts'
import { oneTimePassword } from '../homes/index.ts'
import { identifier } from '../platform/identifiers.ts'
import { textSettings, type FollowSessions } from './follow-changes.ts'
import { namesOf, type Stream } from './move.ts'
import { createApplierSql } from './move-sql.ts'
import type { Locations } from './locations.ts'
import { positionRightsSql } from './reverse-state.ts'

/** Opens the sessions, calls `work` with them, and closes them. */
export async function withSessions<T>(
  { source, target, tenantId, stream }: Locations & { stream: Stream },
  signal: AbortSignal,
  work: (sessions: FollowSessions) => Promise<T>,
): Promise<T> {
  const role = namesOf(tenantId).apply
  const { password, verifier } = oneTimePassword()
  await dropLogin(target, role)
  const rights = stream.isReverse ? [positionRightsSql(tenantId)] : []
  await asAdmin(target, signal, (client) => client.query([createApplierSql(tenantId, verifier), ...rights].join(';\n')))
  try {
    return await asAdmin(source, signal, (slot) =>
      asAdmin(target, signal, (admin) =>
        asLogin(target, { role, password }, signal, async (tenant) => {
          for (const setting of textSettings) for (const client of [slot, admin, tenant]) await client.query(setting)
          for (const client of [admin, tenant]) await client.query('set session_replication_role = replica')
          await admin.query("set search_path = ''")
          await tenant.query(`set search_path = ${identifier(tenantId)}; set row_security = on`)
          return work({ slot, admin, tenant })
        }),
      ),
    )
  } finally {
    await dropLogin(target, role)
  }
}
