// Deliveries in a home: changes of records that functions are to be told of, in the order in which they are told. They are
// deleted once the function has taken them, so nobody has to remember how far it has come: of transactions that ran at the
// same time, one that commits late leaves lower numbers behind which are simply taken next. Changes of the same record keep
// their order even so: the second waits for the first one's lock, and takes its number after that has committed.
import { sql, type Row, type Value } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Claim } from '../invocations/invocation-store.ts'
import { maxEventBytes } from '../invocations/invoke-routes.ts'

const context: RlsContext = { role: 'service', reason: 'deliveries to functions' }

export interface Delivery {
  seq: number
  /** JSON; undefined when it is longer than a function takes. */
  payload: string | undefined
  attempts: number
  /** Milliseconds since 1970; undefined: at once. */
  nextAttempt: number | undefined
}

/** How many are read ahead of a function, and bytes of them. */
const maxAhead = 50
const bytesAhead = 256 * 1024

/** The next ones of a function: of the first at least one, of the rest what is due with it. */
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
     where before < ${bytesAhead} order by seq`,
    functionId,
  )
  return rows.map((row) => ({
    seq: Number(row['seq']),
    payload: typeof row['payload'] === 'string' ? row['payload'] : undefined,
    attempts: Number(row['attempts']),
    nextAttempt: row['next_attempt'] === null ? undefined : Number(row['next_attempt']),
  }))
}

/** Which of these functions have deliveries that wait, and since when the first of each may be tried. */
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

/** It is run while it waits, and by the one who delivers now: another may have taken over meanwhile. */
export function claimDelivery(seq: number, holder: string): Claim {
  return {
    text: `select 1 from function_deliveries d, function_dispatcher l, f
      where d.seq = $5::bigint and d.function_id = f.id and d.state = 'waiting' and l.holder = $6 and l.until > now()`,
    values: [seq, holder],
  }
}

export async function deliveryDone({ database }: Tenant, seq: number): Promise<void> {
  await database.query(context, 'delete from function_deliveries where seq = $1', seq)
}

/** @param nextAttempt milliseconds since 1970; undefined: none, it is dead */
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

/** Of functions that are gone; a writer that began before may have told one. */
export async function dropOrphans({ database }: Tenant): Promise<void> {
  await database.query(
    context,
    'delete from function_deliveries d where not exists (select from functions f where f.id = d.function_id)',
  )
}

/** Takes or keeps the right to deliver. @returns milliseconds after which whoever has it loses it, unless they keep it */
export async function takeLease(
  { database }: Tenant,
  holder: string,
  milliseconds: number,
): Promise<{ isOurs: boolean; left: number }> {
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
      'select holder = $1 as ours, extract(epoch from until - now()) * 1000 as left from function_dispatcher',
      holder,
    ),
  )
  const row = results[1]?.rows[0]
  return { isOurs: row?.['ours'] === true, left: Math.max(0, Number(row?.['left'] ?? 0)) }
}

export async function leaveLease({ database }: Tenant, holder: string): Promise<void> {
  await database.query(context, 'delete from function_dispatcher where holder = $1', holder)
}

type DeliveryStatus = 'waiting' | 'dead'

/** Bytes of a page of deliveries, but for its last one. */
const pageBytes = 2 * 1024 * 1024

/** The page behind `after`, as they are shown. */
export async function listDeliveries(
  tenant: Tenant,
  caller: RlsContext,
  functionId: string,
  { status, limit, after }: { status: DeliveryStatus | undefined; limit: number; after: number },
): Promise<{ deliveries: Row[]; next: string | null }> {
  const { rows } = await tenant.database.query(
    caller,
    `select * from (
       select seq, state, attempts, next_attempt_at, last_error, created_at, payload,
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
  // A page that ends by its bytes ends early; whether there is more shows when it is asked for.
  const isAll = rows.length <= limit && (await countBehind(tenant, caller, functionId, status, last)) === 0
  return { deliveries, next: isAll ? null : String(last) }
}

async function countBehind(
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

/** One, or all that are dead: as new ones, in their old places. @returns how many */
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
  return new RuntimeError('NO_SUCH_DELIVERY', 'the function has no such delivery')
}
