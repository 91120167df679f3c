// Deliveries in a home: changes of records for functions, in the order of their delivery. A delivery is deleted once the
// function has accepted it, so no position is stored. If a concurrent transaction commits late, its lower numbers are delivered
// next. Changes of the same record are still in order, because the second one waits for the first one's lock and takes its
// number after that commit.
import { sql, type Row, type Statement, type Value } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Claim } from '../invocations/invocation-store.ts'
import { maxEventBytes } from '../invocations/invoke-routes.ts'

const context: RlsContext = { role: 'service', reason: 'deliveries to functions' }

export interface Delivery {
  seq: number
  /** The change as JSON; undefined if it is longer than a function accepts. */
  payload: string | undefined
  attempts: number
  /** Time of the next attempt in milliseconds since 1970; undefined for at once. */
  nextAttempt: number | undefined
}

/** Maximum number of deliveries that are read at once. */
const maxAhead = 50
/** Maximum bytes of deliveries that are read at once, without the first one. */
const maxBytesAhead = 256 * 1024

/** Reads the next deliveries of a function, at least one if there is any. */
export async function nextDeliveries({ database }: Tenant, functionId: string): Promise<Delivery[]> {
  const { rows } = await database.query(
    context,
    `select seq, case when bytes <= ${maxEventBytes} then payload end as payload, attempts,
       extract(epoch from next_attempt_at) * 1000 as next_attempt
     from (
       select *, octet_length(payload) as bytes,
         sum(octet_length(payload)) over (order by seq) - octet_length(payload) as before
       from (
         select seq, payload::text as payload, attempts, next_attempt_at from function_deliveries
         where function_id = $1 and state = 'waiting' order by seq limit ${maxAhead}) d) d
     where before < ${maxBytesAhead} order by seq`,
    functionId,
  )
  return rows.map((row) => ({
    seq: Number(row['seq']),
    payload: typeof row['payload'] === 'string' ? row['payload'] : undefined,
    attempts: Number(row['attempts']),
    nextAttempt: row['next_attempt'] === null ? undefined : Number(row['next_attempt']),
  }))
}

/** Returns those of the functions that have waiting deliveries, with the time of the first one's next attempt. */
export async function waitingFunctions(
  { database }: Tenant,
  functionIds: readonly string[],
): Promise<{ functionId: string; nextAttempt: number | undefined }[]> {
  const { rows } = await database.lookUp(
    context,
    sql(
      `select f.id, extract(epoch from d.next_attempt_at) * 1000 as next_attempt from unnest($1::uuid[]) f (id),
     lateral (select next_attempt_at from function_deliveries where function_id = f.id and state = 'waiting' order by seq limit 1) d`,
      `{${functionIds.join(',')}}`,
    ),
  )
  return rows.map((row) => ({
    functionId: String(row['id']),
    nextAttempt: row['next_attempt'] === null ? undefined : Number(row['next_attempt']),
  }))
}

/** Returns a claim that succeeds if the delivery still waits and `holder` still holds the lease. */
export function claimDelivery(seq: number, holder: string): Claim {
  return {
    text: `select 1 from function_deliveries d, function_dispatcher l, f
      where d.seq = $5::bigint and d.function_id = f.id and d.state = 'waiting' and l.holder = $6 and l.until > now()`,
    values: [seq, holder],
  }
}

/** Returns a statement that removes a delivery, because the function has accepted it. */
export function deliveryDone(seq: number): Statement {
  return sql('delete from function_deliveries where seq = $1', seq)
}

/** Records a failed attempt. @param nextAttempt milliseconds since 1970; undefined if the delivery is dead */
export async function deliveryFailed(
  { database }: Tenant,
  seq: number,
  { attempts, nextAttempt, message }: { attempts: number; nextAttempt: number | undefined; message: string },
): Promise<void> {
  await database.query(
    context,
    `update function_deliveries set attempts = $2, last_error = $3, state = case when $4::float8 is null then 'dead' else 'waiting' end,
       next_attempt_at = to_timestamp($4::float8 / 1000) where seq = $1 and state = 'waiting'`,
    seq,
    attempts,
    message.toWellFormed().replaceAll('\0', '\ufffd'),
    nextAttempt ?? null,
  )
}

/** Deletes deliveries of deleted functions, which a transaction that began before may have written. */
export async function dropOrphans({ database }: Tenant): Promise<void> {
  await database.query(
    context,
    'delete from function_deliveries d where not exists (select from functions f where f.id = d.function_id)',
  )
}

/** Takes or extends the lease for deliveries. @returns whether it is ours, and the milliseconds until its end */
export async function takeLease(
  { database }: Tenant,
  holder: string,
  milliseconds: number,
): Promise<{ isOurs: boolean; remaining: number }> {
  const results = await database.run(
    context,
    sql(
      `insert into function_dispatcher as l (holder, until) values ($1, now() + $2 * interval '1 millisecond')
       on conflict (only_row) do update set holder = excluded.holder, until = excluded.until
       where l.holder = excluded.holder or l.until <= now()`,
      holder,
      milliseconds,
    ),
    sql(
      'select holder = $1 as ours, extract(epoch from until - now()) * 1000 as remaining from function_dispatcher',
      holder,
    ),
  )
  const row = results[1]?.rows[0]
  return { isOurs: row?.['ours'] === true, remaining: Math.max(0, Number(row?.['remaining'] ?? 0)) }
}

export async function releaseLease({ database }: Tenant, holder: string): Promise<void> {
  await database.query(context, 'delete from function_dispatcher where holder = $1', holder)
}

type DeliveryStatus = 'waiting' | 'dead'

/** Bytes of a page of deliveries, without its last one. */
const pageBytes = 2 * 1024 * 1024

/** Longest shown error. A trigger of the tenant can write longer ones. */
const maxErrorLength = 4_096

/** Lists the page after number `after`. */
export async function listDeliveries(
  tenant: Tenant,
  caller: RlsContext,
  functionId: string,
  { status, limit, after }: { status: DeliveryStatus | undefined; limit: number; after: number },
): Promise<{ deliveries: Row[]; next: string | null }> {
  const { rows } = await tenant.database.query(
    caller,
    `select * from (
       select seq, state, attempts, next_attempt_at, left(last_error, ${maxErrorLength}) as last_error, created_at,
         case when octet_length(payload::text) <= ${maxEventBytes} then payload end as payload,
         sum(octet_length(payload::text)) over (order by seq) - octet_length(payload::text) as before
       from (
         select * from function_deliveries
         where function_id = $1 and ($2::text is null or state = $2) and seq > $3 order by seq limit $4) d) d
     where before < ${pageBytes} order by seq`,
    functionId,
    status ?? null,
    after,
    limit + 1,
  )
  const shown = rows.slice(0, limit)
  const deliveries = shown.map(({ seq, state, attempts, next_attempt_at, last_error, created_at, payload }) => ({
    seq,
    status: state,
    attempts,
    next_attempt_at,
    last_error,
    created_at,
    payload,
  }))
  const last = Number(deliveries.at(-1)?.seq ?? 0)
  // A page can end early because of its bytes, so another query checks whether there are more.
  const isAll = rows.length <= limit && (await countAfter(tenant, caller, functionId, status, last)) === 0
  return { deliveries, next: isAll ? null : String(last) }
}

async function countAfter(
  { database }: Tenant,
  caller: RlsContext,
  functionId: string,
  status: DeliveryStatus | undefined,
  seq: number,
): Promise<number> {
  const { rows } = await database.query(
    caller,
    'select exists (select from function_deliveries where function_id = $1 and ($2::text is null or state = $2) and seq > $3)::int as more',
    functionId,
    status ?? null,
    seq,
  )
  return Number(rows[0]?.['more'])
}

/** Resets one delivery, or all dead ones, so that they are delivered again by their old numbers. @returns how many */
export async function replayDeliveries(
  { database }: Tenant,
  caller: RlsContext,
  functionId: string,
  seq: number | 'dead',
): Promise<number> {
  const [which, values]: [string, Value[]] = seq === 'dead' ? ["state = 'dead'", []] : ['seq = $2', [seq]]
  const { count } = await database.query(
    caller,
    `update function_deliveries set state = 'waiting', attempts = 0, next_attempt_at = null where function_id = $1 and ${which}`,
    functionId,
    ...values,
  )
  return count
}

export async function deleteDelivery(
  { database }: Tenant,
  caller: RlsContext,
  functionId: string,
  seq: number,
): Promise<void> {
  const { count } = await database.query(
    caller,
    'delete from function_deliveries where function_id = $1 and seq = $2',
    functionId,
    seq,
  )
  if (count === 0) throw noSuchDelivery()
}

export function noSuchDelivery(): RuntimeError {
  return new RuntimeError('NO_SUCH_DELIVERY', 'The function has no such delivery.')
}
