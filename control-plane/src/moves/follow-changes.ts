// Reads the changes of a home from its replication slot, and applies them to the copy. A later call continues where the last
// one has ended.
import type pg from 'pg'
import { literal } from '../platform/identifiers.ts'
import { Applier } from './apply-changes.ts'
import type { Stream } from './move.ts'
import { MoveError } from './move-error.ts'
import { readMessage } from './pgoutput.ts'
import { isBefore, readPosition, writePosition } from './reverse-state.ts'

export interface FollowSessions {
  /** The superuser's session in the source, which reads the slot. */
  slot: pg.Client
  /** The superuser's session in the copy, which changes the service's tables: no code of the tenant is attached to them. */
  admin: pg.Client
  /** The session that changes the tenant's tables. */
  tenant: pg.Client
}

export interface Follow extends FollowSessions {
  tenantId: string
  /**
   * The stream of the changes. A reverse one records its position together with the changes, so that another call, also
   * after an interruption, applies none of them again.
   */
  stream: Stream
  /** Names of the service's tables. */
  serviceTables: ReadonlySet<string>
  failpoint?: (name: 'reverse.half-applied' | 'reverse.applied') => void | Promise<void>
}

export interface Followed {
  /** Rows that were changed. */
  rows: number
  /** Whether transactions were read that `accepts` rejected. */
  isStopped: boolean
}

const fetchedRows = 2_000
/** Changes after which a call ends at the next commit. */
const maxChanges = 20_000
const emptyPosition = '0/0'

/** Settings of the sessions that write and read values as text, which must agree. */
export const textSettings = [
  "set datestyle = 'ISO, YMD'",
  "set intervalstyle = 'postgres'",
  "set timezone = 'UTC'",
  "set bytea_output = 'hex'",
  'set extra_float_digits = 1',
]

/**
 * Applies the transactions up to a position of the log, or the next ones.
 * @param accepts whether a transaction is to be applied. Those after the first one that is not must not be, either
 * @throws MoveError for a change that does not fit the copy
 */
export async function followChanges(
  follow: Follow,
  { upTo, accepts = () => true }: { upTo?: string; accepts?: (xid: number) => boolean } = {},
): Promise<Followed> {
  const { slot, admin, tenant, tenantId, stream, failpoint } = follow
  const { slot: name, publication, isReverse } = stream
  const applier = new Applier({ tenantId, admin, tenant, serviceTables: follow.serviceTables })
  let [end, messages, isStopped] = [emptyPosition, 0, false]
  const position = upTo ?? (await flushedPosition(slot))
  for (const client of [admin, tenant]) await client.query('begin')
  await tenant.query('set constraints all deferred')
  const reached = isReverse && {
    service: await readPosition(admin, tenantId, 'service'),
    tenant: await readPosition(tenant, tenantId, 'tenant'),
  }
  await slot.query('begin')
  await slot.query(
    `declare changes no scroll cursor for select data from pg_logical_slot_peek_binary_changes(${literal(name)}, ` +
      `${upTo === undefined ? 'null' : `${literal(upTo)}::pg_lsn`}, ${upTo === undefined ? maxChanges : 'null'}, ` +
      `'proto_version', '1', 'publication_names', ${literal(publication)})`,
  )
  for (;;) {
    const { rows: fetched } = await slot.query<{ data: Buffer }>(`fetch ${fetchedRows} from changes`)
    if (fetched.length === 0) break
    messages += fetched.length
    for (const { data } of fetched) {
      const message = readMessage(data)
      if (message.type === 'relation') await applier.describe(message.relation)
      else if (message.type === 'begin') {
        const isAccepted = accepts(message.xid)
        if (isStopped && isAccepted)
          throw new MoveError('The order of commits was not the expected one.', { isTemporary: true })
        isStopped ||= !isAccepted
        const { commitLsn } = message
        if (reached)
          applier.skip({
            service: isBefore(commitLsn, reached.service),
            tenant: isBefore(commitLsn, reached.tenant),
          })
      } else if (!isStopped) {
        if (message.type === 'commit') end = message.endLsn
        else await applier.apply(message)
      }
    }
  }
  await slot.query('commit')
  await applier.flush()
  const isRecorded = isReverse && end !== emptyPosition
  if (isRecorded) {
    await writePosition(admin, tenantId, 'service', end)
    await writePosition(tenant, tenantId, 'tenant', end)
  }
  await admin.query('commit')
  if (isRecorded) await failpoint?.('reverse.half-applied')
  await tenant.query('commit')
  if (isRecorded) await failpoint?.('reverse.applied')
  // The slot also passes what other homes have written, so that the server does not retain it.
  const isWhole = !isStopped && (upTo !== undefined || messages < maxChanges)
  await slot.query(
    `select pg_replication_slot_advance(slot_name, reached)
     from (select slot_name, greatest($2::pg_lsn, $3::pg_lsn, confirmed_flush_lsn) as reached
           from pg_replication_slots where slot_name = $1) as slots`,
    [name, end, isWhole ? position : emptyPosition],
  )
  return { rows: applier.rows, isStopped }
}

async function flushedPosition(slot: pg.Client): Promise<string> {
  const { rows } = await slot.query<{ lsn: string }>('select pg_current_wal_flush_lsn()::text as lsn')
  return rows[0]?.lsn ?? emptyPosition
}

/** Returns the bytes of the log that the slot has not read yet. */
export async function pendingBytes(slot: pg.Client, stream: Stream): Promise<number> {
  const { rows } = await slot.query<{ bytes: string | null; status: string | null }>(
    `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), confirmed_flush_lsn)::text as bytes, wal_status as status
     from pg_replication_slots where slot_name = $1`,
    [stream.slot],
  )
  const [found] = rows
  if (found?.bytes == null || found.status === 'lost')
    throw new MoveError('The server has removed changes before they were copied, because of max_slot_wal_keep_size.', {
      isTemporary: true,
    })
  return Number(found.bytes)
}

/** Makes the server write its log, of which commits that did not wait are a part. @returns the position of its end */
export async function flushLog(slot: pg.Client): Promise<string> {
  const { rows } = await slot.query<{ lsn: string }>(
    "select pg_logical_emit_message(true, 'tenantry', '')::text as lsn",
  )
  return rows[0]?.lsn ?? emptyPosition
}
