// The broadcasts in a tenant's table `realtime_messages`: those that SQL sends, and those that clients store.
import { bytesBefore } from '../../database/bytes-before.ts'
import { isOfStatement, RoundTripError } from '../../database/round-trip-error.ts'
import { sql } from '../../database/statement.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { checkingRow, isDenied, requiringTable, topicStatement } from './topic-rights.ts'
import { defaultTtl, type SentBroadcast } from '../protocol/frame.ts'

/** A broadcast in the table. */
export interface StoredMessage {
  id: bigint
  /** The topic without `realtime:`. */
  topic: string
  isPrivate: boolean
  event: string
  /** JSON; undefined for a message that is too large to be sent. */
  payload: string | undefined
}

const context: RlsContext = { role: 'service', reason: 'realtime messages' }
const maxMessages = 200

/** The bytes of messages after which a page ends. */
const pageBytes = 2 * 1024 * 1024

const payloadBytes = "octet_length(coalesce(payload::text, 'null'))"

const head = 'id::text as id, topic, private, event'
const columns = "p.id::text as id, topic, private, event, coalesce(payload::text, 'null') as payload"
const isBroadcast = "extension = 'broadcast' and event is not null and id > 0"

/** Whether the tenant has the table. */
export async function hasMessages({ database }: Tenant): Promise<boolean> {
  const { rows } = await database.lookUp(
    context,
    sql(`select to_regclass('realtime_messages_id_seq') is not null as has_messages`),
  )
  return rows[0]?.['has_messages'] === true
}

/**
 * Reads the next messages after `after`, up to and including `upTo`; at most 200, and 2 MiB apart from the last.
 * @param maxBytes the maximum bytes of a message that can be sent
 * @throws NoMessagesTableError; RoundTripError, RuntimeError when the database does not respond
 */
export async function readMessages(
  tenant: Tenant,
  after: bigint,
  upTo: bigint,
  maxBytes: number,
): Promise<StoredMessage[]> {
  try {
    return await readPage(tenant, after, upTo, maxBytes)
  } catch (error) {
    if (!isOfPayload(error)) throw error
    return readOneByOne(tenant, after, upTo, maxBytes)
  }
}

async function readPage({ database }: Tenant, after: bigint, upTo: bigint, maxBytes: number): Promise<StoredMessage[]> {
  const sentBytes = 'least(bytes, $3::bigint)'
  const { rows } = await requiringTable(() =>
    database.query(
      context,
      `with page as (select * from realtime_messages where ${isBroadcast} and id > $1 and id <= $2 order by id limit ${maxMessages}),
       measured as (select *, ${payloadBytes} as bytes from page)
     select ${head}, case when bytes <= $3 then coalesce(payload::text, 'null') end as payload
     from (select *, ${bytesBefore(sentBytes, 'id')} as before from measured) p where before < ${pageBytes} order by p.id`,
      after,
      upTo,
      maxBytes,
    ),
  )
  return rows.map(toMessage)
}

/** Reads messages of which Postgres cannot show at least one as a text. Such a message is deleted. */
async function readOneByOne(tenant: Tenant, after: bigint, upTo: bigint, maxBytes: number): Promise<StoredMessage[]> {
  const { rows } = await requiringTable(() =>
    tenant.database.query(
      context,
      `select ${head}, null as payload from realtime_messages where ${isBroadcast} and id > $1 and id <= $2 order by id limit 20`,
      after,
      upTo,
    ),
  )
  const messages: StoredMessage[] = []
  for (const message of rows.map(toMessage)) {
    try {
      messages.push(...(await readPage(tenant, message.id - 1n, message.id, maxBytes)))
    } catch (error) {
      if (!isOfPayload(error)) throw error
      await tenant.database.query(context, 'delete from realtime_messages where id = $1', message.id)
      messages.push(message)
    }
  }
  return messages
}

/** Whether Postgres cannot show a payload as a text, or takes too long for it. */
function isOfPayload(error: unknown): boolean {
  return isOfStatement(error) || (error instanceof RoundTripError && error.sqlstate === '57014')
}

/** Reads the newest messages, of about 2 MiB at most, of a private topic since a time in milliseconds since the epoch, the oldest first. */
export async function readReplayed(
  { database }: Tenant,
  topic: string,
  since: number,
  limit: number,
  maxBytes: number,
): Promise<StoredMessage[]> {
  const { rows } = await database.query(
    context,
    `with page as (select * from realtime_messages where ${isBroadcast} and topic = $1 and private and expires_at > now()
       and inserted_at > to_timestamp($2::float8 / 1000) and ${payloadBytes} <= $4 order by inserted_at desc, id desc limit $3)
     select ${columns} from (select *, ${bytesBefore(payloadBytes, 'inserted_at desc, id desc')} as before from page) p
     where before < ${pageBytes} order by inserted_at desc, p.id desc`,
    topic,
    since,
    limit,
    maxBytes,
  )
  return rows.map(toMessage).reverse()
}

/**
 * Stores a broadcast on a private topic with the rights of its sender. It is sent to those who are connected as soon as it
 * is committed.
 * @param ttl the seconds for which clients that join later may request it
 * @returns false when the policies do not allow it
 * @throws NoMessagesTableError, RejectedRowError; RoundTripError, RuntimeError when the database does not respond
 */
export async function storeMessage(
  { database }: Tenant,
  sender: RlsContext,
  topic: string,
  event: string,
  payload: string,
  ttl: number,
): Promise<boolean> {
  try {
    const statement = sql(
      `insert into realtime_messages (topic, extension, event, payload, private, expires_at)
         values ($1, 'broadcast', $2, $3::jsonb, true, now() + make_interval(secs => $4::float8))`,
      topic,
      event,
      payload,
      Math.min(ttl, defaultTtl),
    )
    await checkingRow(() => database.run(sender, topicStatement(topic), statement))
    return true
  } catch (error) {
    if (isDenied(error)) return false
    throw error
  }
}

/** Deletes old messages. */
export async function trimMessages(tenant: Tenant): Promise<void> {
  if (!(await hasMessages(tenant))) return
  await tenant.database.query(context, "delete from realtime_messages where inserted_at < now() - interval '3 days'")
}

/** Returns a message as a broadcast. @param payload its JSON */
export function toBroadcast({ id, event }: StoredMessage, payload: string, isReplayed: boolean): SentBroadcast {
  const meta = isReplayed ? { id: String(id), replayed: true } : { id: String(id) }
  return {
    event,
    content: { kind: 'json', text: payload, meta: JSON.stringify(meta) },
    length: Buffer.byteLength(payload),
    storedId: id,
  }
}

function toMessage(row: Record<string, unknown>): StoredMessage {
  const text = (column: string) => String(row[column])
  return {
    id: BigInt(text('id')),
    topic: text('topic'),
    isPrivate: row['private'] === true,
    event: text('event'),
    payload: row['payload'] === null ? undefined : text('payload'),
  }
}
