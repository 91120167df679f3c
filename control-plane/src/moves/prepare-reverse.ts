// Creates the stream that leads back into the old home, before the requests of a move are held: then the new home has no
// writes of its own yet, and a transaction for whose end the slot waits delays no request.
import { asAdmin, asReader, readHomeObjects, type HomeObjects, type SharedLocation } from '../backups/index.ts'
import { isState } from '../platform/sql-state.ts'
import { literal } from '../platform/identifiers.ts'
import type { Locations } from './locations.ts'
import type { MoveDeps } from './move-deps.ts'
import { MoveError } from './move-error.ts'
import { dropSlotSql, identitiesSql, publishSql } from './move-sql.ts'
import { namesOf, neverRevertible, regionAfter, streamOf, type Identity, type MoveJob } from './move.ts'
import { createStateSql } from './reverse-state.ts'
import { structureHash } from './structure.ts'

const slotMilliseconds = 60_000
const lockNotAvailable = '55P03'
/** It exceeds the time after which Postgres ends its own vacuum of a table for others. No tenant waits for the copy. */
const lockMilliseconds = 10_000
/** Each slot reads the whole log of its server. */
const maxReverses = 4

/** Creates the stream. @returns the reason for which there is none; undefined if there is one */
export async function prepareReverse(
  job: MoveJob,
  locations: Locations,
  objects: HomeObjects,
  deps: MoveDeps,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { source, target, tenantId } = locations
  const { ledger, epoch, failpoint } = deps
  const reason = await obstacle(job, target, deps, signal)
  if (reason !== undefined) return reason
  const stream = streamOf(tenantId, 'reverse')
  const names = objects.tables.map(({ name }) => name)
  const isPublished = await asAdmin(target, signal, async (client) => {
    const { rows: identities } = await client.query<Identity>(identitiesSql, [`"${tenantId}"`, names])
    await ledger.recordNewIdentities(job, identities, epoch)
    job.newIdentities = identities
    try {
      await client.query(publishSql(tenantId, stream, names, identities, lockMilliseconds))
      return true
    } catch (cause) {
      if (!isState(cause, lockNotAvailable)) throw cause
      return false
    }
  })
  if (!isPublished) return 'A table of the new home could not be locked.'
  const structure = await structureOf(target, tenantId, signal, namesOf(tenantId).target)
  await asAdmin(source, signal, (client) => client.query(createStateSql(tenantId, job.operationId, structure)))
  await failpoint('move.reverse-published')
  try {
    await asAdmin(target, signal, async (client) => {
      await client.query(`set statement_timeout = ${slotMilliseconds}`)
      await client.query(`select pg_create_logical_replication_slot(${literal(stream.slot)}, 'pgoutput')`)
    })
  } catch (cause) {
    signal.throwIfAborted()
    deps.log.warn({ tenant: tenantId, err: cause }, 'No replication slot could be created for the reverse of a move.')
    await asAdmin(target, signal, (client) => client.query(dropSlotSql(stream)))
    return 'No replication slot could be created: a transaction on the server has not ended, or no slot is free.'
  }
  await failpoint('move.reverse-prepared')
  return undefined
}

async function obstacle(
  job: MoveJob,
  target: SharedLocation,
  deps: MoveDeps,
  signal: AbortSignal,
): Promise<string | undefined> {
  const region = regionAfter(job)
  const { reverseSeconds, reverses } = deps
  const never = neverRevertible(job)
  if (never !== undefined) return never
  if (reverseSeconds === 0) return 'The setting TENANTRY_MOVE_REVERSE_SECONDS is 0.'
  if ((await reverses.count(region)) >= maxReverses)
    return `The region has ${maxReverses} other moves that can be reverted, which is the maximum.`
  const { rows } = await asAdmin(target, signal, (client) =>
    client.query<{ isUnlimited: boolean }>(
      `select setting::int8 < 0 as "isUnlimited" from pg_settings where name = 'max_slot_wal_keep_size'`,
    ),
  )
  return rows[0]?.isUnlimited === true
    ? 'The setting max_slot_wal_keep_size of the Postgres server has no limit.'
    : undefined
}

/** Returns a hash of the definitions of all objects of a home. */
export async function structureOf(
  location: SharedLocation,
  tenantId: string,
  signal: AbortSignal,
  reader: string,
): Promise<string> {
  const read = (client: Parameters<typeof readHomeObjects>[0]) => readHomeObjects(client, tenantId, tenantId)
  return structureHash(await asReader(location, tenantId, tenantId, signal, read, reader))
}

/** Rejects a structure that is not the one with which the reverse has begun. @throws MoveError */
export function rejectStructure(objects: HomeObjects, structure: string): void {
  if (structureHash(objects) !== structure) throw structureChanged()
}

/** Returns the error for a change of the structure after the move. */
export function structureChanged(cause?: unknown): MoveError {
  return new MoveError('The structure of the home has changed since the move.', { cause, isLasting: true })
}
