// Removes what a move has created on the server. Every call may be repeated at any point.
import type pg from 'pg'
import { asAdmin, dropLogin } from '../backups/index.ts'
import { closeSchemaSql, loaderRole, replacedSchema } from '../homes/index.ts'
import { identifier } from '../platform/identifiers.ts'
import { isState } from '../platform/sql-state.ts'
import { endLockingSql, releaseLeaseSql, dropSlotSql, unpublishSql } from './move-sql.ts'
import { markOf, namesOf, streamOf, type Identity, type MoveJob, type Stream } from './move.ts'
import type { Locations, MoveLocation } from './locations.ts'
import { releaseLease } from './release-lease.ts'
import { dropStateSql, readState } from './reverse-state.ts'

const lockNotAvailable = '55P03'
const maxTries = 50

/**
 * Whether the source's schema was renamed, so that the copy is the home. An old home that stays has its name again. No
 * session is left that could rename it later, after a broken link has delivered its commit.
 */
export async function isSwitched({ source }: Locations, job: MoveJob, signal: AbortSignal): Promise<boolean> {
  const marked = await asAdmin(source, signal, async (client) => {
    const { rows } = await client.query<{ isLeft: boolean }>(endLockingSql(job.tenantId))
    if (rows.some(({ isLeft }) => isLeft)) throw new Error('The session that has locked the home has not ended.')
    return markedSchema(client, job)
  })
  return marked !== undefined
}

/** Returns the name of the schema that the move has left. */
async function markedSchema(client: pg.Client, job: MoveJob): Promise<string | undefined> {
  const { rows } = await client.query<{ name: string }>(
    `select nspname as name from pg_namespace
     where nspname = any ($1) and obj_description(oid, 'pg_namespace') = $2`,
    [[replacedSchema(job.tenantId), job.tenantId], markOf(job)],
  )
  return rows[0]?.name
}

/**
 * Lets the home that a move has left stay for a revert, closed to the tenant, if the reverse is prepared. It has its name
 * again, because functions of the tenant that compute columns may contain it.
 * @returns whether the old home stays
 */
export async function retainOldHome(
  { source, target, tenantId }: Locations,
  job: MoveJob,
  signal: AbortSignal,
): Promise<boolean> {
  const { slot } = streamOf(tenantId, 'reverse')
  const { rows: slots } = await asAdmin(target, signal, (client) =>
    client.query(`select 1 from pg_replication_slots where slot_name = $1 and wal_status <> 'lost'`, [slot]),
  )
  return asAdmin(source, signal, async (client) => {
    const state = await readState(client, tenantId)
    if (slots.length === 0 || state?.operationId !== job.operationId || !state.hasBegun) return false
    if ((await markedSchema(client, job)) === tenantId) return true
    const left = identifier(replacedSchema(tenantId))
    await client.query('set session_replication_role = replica')
    await client.query(
      [
        `alter schema ${left} rename to ${identifier(tenantId)}`,
        // The new home has no lease of the move.
        releaseLeaseSql(tenantId),
      ].join(';\n'),
    )
    return true
  })
}

/**
 * Removes the stream that leads back, and its state.
 * @param schema the schema of the new home, whose replica identities are restored if it exists
 */
export async function removeReverse(
  { source, target, tenantId }: Locations,
  { newIdentities = [] }: MoveJob,
  schema: string,
  signal: AbortSignal,
): Promise<void> {
  const stream = streamOf(tenantId, 'reverse')
  if (await target.isPresent(signal))
    await asAdmin(target, signal, (client) => removeStream(client, stream, schema, newIdentities))
  if (!(await source.isPresent(signal))) return
  await asAdmin(source, signal, (client) => client.query(dropSlotSql(stream)))
  await dropLogin(source, namesOf(tenantId).apply)
  await asAdmin(source, signal, (client) => client.query(dropStateSql(tenantId)))
}

/** Closes the old home again, after a revert that has not switched. */
export async function closeOldHome({ tenantId, source }: Locations, signal: AbortSignal): Promise<void> {
  await ifPresent(source, tenantId, closeSchemaSql(tenantId, tenantId), signal)
}

/** Makes the old home a home like any other: a later call of a job does not take it for one that a move has left. */
export async function clearMark({ tenantId, source }: Locations, signal: AbortSignal): Promise<void> {
  await ifPresent(source, tenantId, `comment on schema ${identifier(tenantId)} is null`, signal)
}

/** Runs SQL unless the schema was removed, with the tenant. */
async function ifPresent(location: MoveLocation, schema: string, sql: string, signal: AbortSignal): Promise<void> {
  if (!(await location.isPresent(signal))) return
  await asAdmin(location, signal, async (client) => {
    const { rows } = await client.query('select 1 from pg_namespace where nspname = $1', [schema])
    if (rows.length > 0) await client.query(sql)
  })
}

async function removeStream(
  client: pg.Client,
  stream: Stream,
  schema: string,
  identities: readonly Identity[],
): Promise<void> {
  await client.query(dropSlotSql(stream))
  for (let tries = 1; ; tries++) {
    try {
      await client.query(unpublishSql(stream, schema, identities))
      return
    } catch (cause) {
      if (!isState(cause, lockNotAvailable) || tries >= maxTries) throw cause
    }
  }
}

/** Removes the slot, the publication and the logins, and restores the replica identities. */
export async function removeFollowing(
  { source, target, tenantId }: Locations,
  { identities = [] }: MoveJob,
  schema: string,
  signal: AbortSignal,
): Promise<void> {
  const names = namesOf(tenantId)
  if (await source.isPresent(signal)) {
    await asAdmin(source, signal, (client) => removeStream(client, streamOf(tenantId, 'move'), schema, identities))
    await releaseLease(source, tenantId, signal)
    for (const role of [names.source, names.target]) await dropLogin(source, role)
  }
  // The last two have rights or objects in the target, which can be on another server.
  if (await target.isPresent(signal))
    for (const role of [names.target, names.apply, loaderRole(tenantId)]) await dropLogin(target, role)
}
