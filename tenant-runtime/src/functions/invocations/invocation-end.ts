// SQL statements that write the record and the log of a run that has ended. Pure.
import { sql, type Statement } from '../../database/statement.ts'
import type { LogLevel } from '../executor/protocol.ts'
import type { TriggerKind } from './trigger-kind.ts'
import type { LogLine } from './run-lines.ts'

/** Estimated bytes of a stored line in addition to its message. */
const lineOverheadBytes = 80

export interface InvocationEnd {
  invocationId: string
  /** The beginning; `at` is in milliseconds since 1970. */
  begun: { functionId: string; trigger: TriggerKind; userId: string | null; at: number }
  status: 'success' | 'error' | 'timeout'
  durationMilliseconds: number
  cpuMicroseconds: number
  /** Peak of the memory in bytes. */
  memoryPeak: number
  /** Bytes sent with `http_fetch`. */
  egressBytes: number
  errorMessage: string | null
  /** The log; undefined if it is empty. */
  log: LoggedLines | undefined
  /** A statement that is executed in the same transaction. */
  completion?: Statement | undefined
}

/** A run whose record is written only at its end. */
export interface WholeRun extends InvocationEnd {
  /** Time of the last change of the function that was run. */
  version: string
}

interface LoggedLines {
  /** Time of the first line, in milliseconds since 1970. */
  at: number
  lines: { timestamp: string; level: LogLevel; message: string }[]
  bytes: number
}

/** Converts lines to the form in which they are stored. */
export function loggedLines(lines: readonly LogLine[]): LoggedLines | undefined {
  const [first] = lines
  if (first === undefined) return undefined
  const stored = lines.map(({ at, level, message }) => ({
    timestamp: new Date(at).toISOString(),
    level,
    message: storable(message),
  }))
  return {
    at: first.at,
    lines: stored,
    bytes: stored.reduce((sum, { message }) => sum + Buffer.byteLength(message) + lineOverheadBytes, 0),
  }
}

/** The trigger of a record, of which the specification has three kinds. A webhook is an HTTP request. */
export const recordedTrigger = { http: 'http', webhook: 'http', database: 'database', schedule: 'schedule' } as const

/** Selects records by an array of ids too, so that Postgres uses the index whatever number of rows it estimates. */
const ended = `update function_invocations i
  set state = 'ended', status = e.status, duration_ms = e.duration_ms, cpu_ms = e.cpu_ms, memory_peak = e.memory_peak,
    egress_bytes = e.egress_bytes, error_message = e.error_message
  from e where i.id = any($2::text[]) and i.id = e.id and i.state = 'interrupted' returning i.id`
const columnsOfEnd =
  'id text, status text, duration_ms integer, cpu_ms double precision, memory_peak bigint, egress_bytes bigint, error_message text'
const columnsOfLog = 'function_id uuid, reported_at timestamptz, lines jsonb, bytes integer'
const columnsOfBegin = 'trigger text, user_id text, begun timestamptz'
const columnsOfWhole = `${columnsOfEnd}, ${columnsOfLog}, ${columnsOfBegin}, version timestamptz`
const logged = `insert into function_logs (function_id, invocation_id, timestamp, lines, bytes)
  select e.function_id, e.id, e.reported_at, e.lines, e.bytes from i join e using (id) where e.lines is not null`

const given = (columns: string) => `with e as (select * from jsonb_to_recordset($1::jsonb) as e (${columns}))`
const endWithoutLog = `${given(columnsOfEnd)}, i as (${ended}) select id from i`
const endWithLog = `${given(`${columnsOfEnd}, ${columnsOfLog}`)}, i as (${ended}), l as (${logged}) select id from i`
const begunAndEnded = `insert into function_invocations
    (id, function_id, trigger, user_id, timestamp, state, status, duration_ms, cpu_ms, memory_peak, egress_bytes, error_message)
  select e.id, f.id, e.trigger, e.user_id, e.begun, 'ended', e.status, e.duration_ms, e.cpu_ms, e.memory_peak, e.egress_bytes,
    e.error_message
  from e join functions f on f.id = e.function_id`
const endOfLost = `${given(columnsOfWhole)}, stored as (select id from function_invocations where id = any($2::text[])),
  i as (${begunAndEnded} where e.id not in (select id from stored) returning id), l as (${logged}) select id from i`
const whole = `${given(columnsOfWhole)}, i as (${begunAndEnded} where f.enabled and f.updated_at = e.version returning id)`
const unwritten = 'select id from e where id not in (select id from i)'
const wholeWithoutLog = `${whole} ${unwritten}`
const wholeWithLog = `${whole}, l as (${logged}) ${unwritten}`

/** Writes the ends of recorded runs. Column: `id` of each record that was ended. */
export function endStatement(ends: readonly InvocationEnd[]): Statement {
  return sql(ends.some(({ log }) => log !== undefined) ? endWithLog : endWithoutLog, ...valuesOf(ends))
}

/** Writes the runs that have no record, unless their function was deleted. */
export function lostEndStatement(ends: readonly InvocationEnd[]): Statement {
  return sql(endOfLost, ...valuesOf(ends))
}

/** Writes complete records of runs. Column: `id` of each run without a record, because its function was changed meanwhile. */
export function wholeStatement(runs: readonly WholeRun[]): Statement {
  return sql(
    runs.some(({ log }) => log !== undefined) ? wholeWithLog : wholeWithoutLog,
    JSON.stringify(runs.map((run) => ({ ...storedEnd(run), version: run.version }))),
  )
}

/**
 * Counts the records that have ended, in column `stored`. Locking a row writes to the log of Postgres, so the commit waits
 * for the disk, and so for all commits before it.
 */
export function syncStatement(ends: readonly InvocationEnd[]): Statement {
  return sql(
    `with locked as (select from function_invocations where id = any($1::text[]) and state = 'ended' for no key update)
     select count(*)::int as stored from locked`,
    idsOf(ends),
  )
}

function valuesOf(ends: readonly InvocationEnd[]): [string, string] {
  return [JSON.stringify(ends.map(storedEnd)), idsOf(ends)]
}

function storedEnd({
  invocationId,
  begun,
  status,
  durationMilliseconds,
  cpuMicroseconds,
  memoryPeak,
  egressBytes,
  errorMessage,
  log,
}: InvocationEnd) {
  return {
    id: invocationId,
    function_id: begun.functionId,
    trigger: recordedTrigger[begun.trigger],
    user_id: begun.userId,
    begun: new Date(begun.at).toISOString(),
    status,
    duration_ms: Math.round(durationMilliseconds),
    cpu_ms: cpuMicroseconds / 1000,
    memory_peak: memoryPeak,
    egress_bytes: egressBytes,
    error_message: errorMessage === null ? null : storable(errorMessage),
    ...(log === undefined ? {} : { reported_at: new Date(log.at).toISOString(), lines: log.lines, bytes: log.bytes }),
  }
}

/** Writes the bytes that a run in progress may have sent at most, before it sends them. */
export function egressStatement(invocationId: string, bytes: number): Statement {
  return sql(
    "update function_invocations set egress_bytes = $2::bigint where id = $1 and state = 'interrupted'",
    invocationId,
    bytes,
  )
}

/** Returns the ids as the text of an array, in which they need no quotes. */
function idsOf(ends: readonly InvocationEnd[]): string {
  return `{${ends.map(({ invocationId }) => invocationId).join(',')}}`
}

/** Replaces what Postgres' JSON rejects: NUL and unpaired surrogates. */
function storable(text: string): string {
  return text.toWellFormed().replaceAll('\0', '\ufffd')
}
