// One record for each invocation (specification, section 2.5): there from the dispatch on as an interrupted one, so
// that a kill at any moment leaves exactly it. Those of a tenant that begin or end at the same time share a transaction.
//
// A beginning does not wait for the disk: what it wrote is there for everybody at once, and safe with the next commit that
// waits, at the latest that of its own end. Should Postgres be killed in between, the end finds no record and writes it.
import { setTimeout as sleep } from 'node:timers/promises'
import { databaseError } from '../../database/database-error.ts'
import { SharedTrips } from '../../database/shared-trips.ts'
import { sql, type Statement, type Value } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { LogLevel } from '../executor/protocol.ts'
import { isName, type FunctionRecord } from '../function.ts'
import { functionColumns, noSuchFunction, toFunction } from '../function-store.ts'
import type { TriggerKind } from './invoke.ts'
import type { LogLine } from './run-lines.ts'

/** Bytes that a stored line takes beside its message, about. */
const lineOverhead = 80
/** Milliseconds before each further attempt to write an end: a server that was killed is back within seconds. */
const attempts = [100, 300, 1_000, 3_000]

const context = { role: 'service', reason: 'record of an invocation' } as const

/**
 * What only one of several may run, such as a planned time. It is won in the same statement that writes the record: both
 * happen, or neither.
 */
export interface Claim {
  /**
   * Of the statement's CTE `claim`: one that changes something and returns a row when it is won. It may read `f`, the function
   * (its columns; `f.id`); its values are `$5`, `$6`, … For example `insert into runs (function_id, at) select f.id, $5 from f
   * on conflict do nothing returning 1`.
   */
  text: string
  values: readonly Value[]
}

/** Somebody else has what the claim is about. No record was written. */
export class ClaimTaken extends Error {
  constructor() {
    super('the run was claimed before')
    this.name = 'ClaimTaken'
  }
}

export interface InvocationBegin {
  /** The function's. */
  name: string
  invocationId: string
  trigger: TriggerKind
  userId: string | null
  claim?: Claim | undefined
}

export interface InvocationEnd {
  invocationId: string
  /** As it began; milliseconds since 1970. */
  begun: { functionId: string; trigger: TriggerKind; userId: string | null; at: number }
  status: 'success' | 'error' | 'timeout'
  durationMilliseconds: number
  cpuMicroseconds: number
  /** Bytes. */
  memoryPeak: number
  errorMessage: string | null
  /** What it said: undefined for nothing. */
  log: LoggedLines | undefined
}

export interface LoggedLines {
  /** Milliseconds since 1970, of the first line. */
  at: number
  lines: { timestamp: string; level: LogLevel; message: string }[]
  bytes: number
}

/** Lines as they are stored. */
export function loggedLines(lines: readonly LogLine[]): LoggedLines | undefined {
  const [first] = lines
  if (first === undefined) return undefined
  const stored = lines.map(({ at, level, message }) => ({ timestamp: new Date(at).toISOString(), level, message: storable(message) }))
  return { at: first.at, lines: stored, bytes: stored.reduce((sum, { message }) => sum + Buffer.byteLength(message) + lineOverhead, 0) }
}

/** The specification has three kinds for records; a webhook comes over HTTP. */
const recordedTrigger = { http: 'http', webhook: 'http', database: 'database', schedule: 'schedule' } as const

interface Books {
  begins: SharedTrips<InvocationBegin, FunctionRecord | 'none'>
  ends: SharedTrips<InvocationEnd, 'written'>
}

const known = new WeakMap<Tenant['database'], Books>()

function booksOf(tenant: Tenant): Books {
  const { database } = tenant
  let books = known.get(database)
  if (books === undefined) {
    books = { begins: new SharedTrips((begins) => begin(database, begins)), ends: new SharedTrips((ends) => end(database, ends)) }
    known.set(database, books)
  }
  return books
}

/**
 * Finds the function and writes the record, in one statement.
 * @throws RuntimeError NO_SUCH_FUNCTION also for a disabled one; ClaimTaken
 */
export async function beginInvocation(tenant: Tenant, job: InvocationBegin): Promise<FunctionRecord> {
  if (!isName(job.name)) throw noSuchFunction()
  try {
    // A claim may wait for another transaction's: it keeps nobody else waiting.
    const fn = job.claim === undefined ? await booksOf(tenant).begins.run(job) : await beginClaimed(tenant, job, job.claim)
    if (fn === 'none') throw noSuchFunction()
    return fn
  } catch (error) {
    // Deleted between the look and the record.
    throw databaseError(error, { function_is_there: noSuchFunction })
  }
}

async function begin(database: Tenant['database'], begins: readonly InvocationBegin[]): Promise<(FunctionRecord | 'none')[]> {
  const [result] = await database.run(context, beginStatement(begins))
  const found = new Map(result?.rows.map((row) => [String(row['name']), toFunction(row)]))
  return begins.map(({ name }) => found.get(name) ?? 'none')
}

function beginStatement(begins: readonly InvocationBegin[]): Statement {
  // Names need no quotes in an array's text.
  const names = `{${[...new Set(begins.map(({ name }) => name))].join(',')}}`
  const records = begins.map(({ invocationId, name, trigger, userId }) => ({ id: invocationId, name, trigger: recordedTrigger[trigger], user_id: userId }))
  return sql(
    `with f as (select ${functionColumns} from functions f where f.name = any($1::text[]) and f.enabled),
     i as (insert into function_invocations (id, function_id, trigger, user_id) select b.id, f.id, b.trigger, b.user_id
       from jsonb_to_recordset($2::jsonb) as b (id text, name text, trigger text, user_id text) join f using (name))
     select f.*, set_config('synchronous_commit', 'off', true) from f`,
    names, JSON.stringify(records),
  )
}

async function beginClaimed({ database }: Tenant, { name, invocationId, trigger, userId }: InvocationBegin, { text, values }: Claim): Promise<FunctionRecord | 'none'> {
  const { rows } = await database.query(
    context,
    `with f as (select ${functionColumns} from functions f where f.name = $1 and f.enabled),
     claim as (${text}),
     i as (insert into function_invocations (id, function_id, trigger, user_id) select $2, f.id, $3, $4 from f where exists (select from claim))
     select f.*, exists (select from claim) as claimed from f`,
    name, invocationId, recordedTrigger[trigger], userId, ...values,
  )
  const [row] = rows
  if (row === undefined) return 'none'
  if (row['claimed'] !== true) throw new ClaimTaken()
  return toFunction(row)
}

/**
 * Writes the end of the run and its log. Nothing happens when its function was deleted, or its end is written already.
 * @throws RuntimeError when the database does not take it, after some time: then the record stays an interrupted one
 */
export async function endInvocation(tenant: Tenant, job: InvocationEnd): Promise<void> {
  for (const pause of [...attempts, undefined]) {
    try {
      await booksOf(tenant).ends.run(job)
      return
    } catch (thrown) {
      const error = databaseError(thrown)
      const isPassing = error instanceof RuntimeError && (error.code === 'DATABASE_UNAVAILABLE' || error.code === 'DATABASE_BUSY')
      if (pause === undefined || !isPassing) throw error
      await sleep(pause)
    }
  }
}

/** The log goes with the record: who finds it ended already has written both. */
async function end(database: Tenant['database'], ends: readonly InvocationEnd[]): Promise<'written'[]> {
  const found = await database.query(context, ends.some(({ log }) => log !== undefined) ? endWithLog : endWithoutLog, ...valuesOf(ends))
  if (found.count < ends.length) await database.query(context, endOfLost, ...valuesOf(ends))
  return ends.map(() => 'written')
}

/** Named by their ids too, so that they are found by them however many Postgres believes there to be. */
const ended = `update function_invocations i
  set status = e.status, duration_ms = e.duration_ms, cpu_ms = e.cpu_ms, memory_peak = e.memory_peak, error_message = e.error_message
  from e where i.id = any($2::text[]) and i.id = e.id and i.error_message = 'interrupted' returning i.id`
const columnsOfEnd = 'id text, status text, duration_ms integer, cpu_ms double precision, memory_peak bigint, error_message text'
const columnsOfLog = 'function_id uuid, said timestamptz, lines jsonb, bytes integer'
const columnsOfBegin = 'trigger text, user_id text, begun timestamptz'
const logged = `insert into function_logs (function_id, invocation_id, timestamp, lines, bytes)
  select e.function_id, e.id, e.said, e.lines, e.bytes from i join e using (id) where e.lines is not null`

const given = (columns: string) => `with e as (select * from jsonb_to_recordset($1::jsonb) as e (${columns}))`
const endWithoutLog = `${given(columnsOfEnd)} ${ended}`
const endWithLog = `${given(`${columnsOfEnd}, ${columnsOfLog}`)}, i as (${ended}), l as (${logged}) select id from i`
/** Of those that have no record, unless their function is deleted. */
const endOfLost = `${given(`${columnsOfEnd}, ${columnsOfLog}, ${columnsOfBegin}`)},
  there as (select id from function_invocations where id = any($2::text[])),
  i as (insert into function_invocations (id, function_id, trigger, user_id, timestamp, status, duration_ms, cpu_ms, memory_peak, error_message)
    select e.id, f.id, e.trigger, e.user_id, e.begun, e.status, e.duration_ms, e.cpu_ms, e.memory_peak, e.error_message
    from e join functions f on f.id = e.function_id where e.id not in (select id from there) returning id),
  l as (${logged}) select id from i`

function valuesOf(ends: readonly InvocationEnd[]): [string, string] {
  const stored = ends.map(({ invocationId, begun, status, durationMilliseconds, cpuMicroseconds, memoryPeak, errorMessage, log }) => ({
    id: invocationId, function_id: begun.functionId, trigger: recordedTrigger[begun.trigger], user_id: begun.userId, begun: new Date(begun.at).toISOString(),
    status, duration_ms: Math.round(durationMilliseconds), cpu_ms: cpuMicroseconds / 1000, memory_peak: memoryPeak,
    error_message: errorMessage === null ? null : storable(errorMessage),
    ...(log === undefined ? {} : { said: new Date(log.at).toISOString(), lines: log.lines, bytes: log.bytes }),
  }))
  // Ids need no quotes in an array's text.
  return [JSON.stringify(stored), `{${ends.map(({ invocationId }) => invocationId).join(',')}}`]
}

/** Postgres' JSON takes neither NUL nor half a character. */
function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd')
}
