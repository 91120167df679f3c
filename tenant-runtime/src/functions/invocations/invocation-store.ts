// Writes one record for each invocation (specification, section 2.5). It is written at the dispatch as an interrupted one, so
// that it is right after a kill at any moment. If the run has no effects before its response, it is written once at the end.
// Records of a tenant that are written at the same time share a transaction.
//
// These transactions do not wait for the disk. A later commit that waits makes their records safe (written-ends.ts). If
// Postgres is killed before, the lost records are written again.
import { setTimeout as sleep } from 'node:timers/promises'
import { databaseError } from '../../database/database-error.ts'
import { SharedRoundTrips } from '../../database/shared-round-trips.ts'
import { sql, type Statement, type Value } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { isName, type FunctionRecord } from '../function.ts'
import { functionColumns, noSuchFunction, toFunction } from '../function-store.ts'
import {
  egressStatement,
  endStatement,
  lostEndStatement,
  recordedTrigger,
  syncStatement,
  wholeStatement,
  type InvocationEnd,
  type WholeRun,
} from './invocation-end.ts'
import type { TriggerKind } from './trigger-kind.ts'
import { WrittenEnds } from './written-ends.ts'

/** Milliseconds before each retry of writing an end. A Postgres that was killed restarts within seconds. */
const retryPauses = [100, 300, 1_000, 3_000]

const context = { role: 'service', reason: 'record of an invocation' } as const

/**
 * Settings that make Postgres find records by their index even if it was planned for few records, and reuse the plan,
 * because planning these statements takes longer than running them.
 */
const byIndex = "set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)"
const asyncCommit = sql(`select ${byIndex}, set_config('synchronous_commit', 'off', true)`)
const syncCommit = sql(`select ${byIndex}`)

/**
 * A claim of work that must run only once, such as a planned time. The statement that writes the record also makes the
 * claim, so that both happen or neither.
 */
export interface Claim {
  /**
   * SQL of the CTE `claim`, which changes something and returns a row if the claim succeeds. It may read `f`, the function's
   * row; its values are `$5`, `$6`, … For example `insert into runs (function_id, at) select f.id, $5 from f on conflict do
   * nothing returning 1`.
   */
  text: string
  values: readonly Value[]
}

/** The error of a claim that was made before. No record was written. */
export class ClaimTaken extends Error {
  constructor() {
    super('The run was claimed before.')
    this.name = 'ClaimTaken'
  }
}

interface InvocationBegin {
  /** The function's name. */
  name: string
  invocationId: string
  trigger: TriggerKind
  userId: string | null
  claim?: Claim | undefined
}

type Entry = { begin: InvocationBegin } | { end: InvocationEnd } | { whole: WholeRun }
/**
 * The result of an entry: for a beginning, the function or `none`; for an end, `written`; for a whole run, `written` or
 * `changed` if the function was changed meanwhile.
 */
type EntryResult = FunctionRecord | 'none' | 'written' | 'changed'

interface Records {
  roundTrips: SharedRoundTrips<Entry, EntryResult>
  /** Functions by their names, as of their last beginning; least recently used first. */
  functions: Map<string, FunctionRecord>
  /** Number of runs that will be recorded shortly. */
  expected: number
}

const maxCachedFunctions = 1_000

const known = new WeakMap<Tenant['database'], Records>()

function recordsOf({ id, database }: Tenant, onError: (error: Error) => void): Records {
  const before = known.get(database)
  if (before !== undefined) return before
  const functions: Records['functions'] = new Map()
  const written = new WrittenEnds({
    makeSafe: (ends) => makeSafe(database, ends),
    isTemporary: (cause) => isTemporary(databaseError(cause)),
    onLoss: (cause) => onError(new Error(`${id}: Ends of invocations may be lost.`, { cause })),
  })
  const roundTrips: Records['roundTrips'] = new SharedRoundTrips(
    async (entries) => {
      const part = <T>(read: (entry: Entry) => T[]): T[] => entries.flatMap(read)
      const ends = part((entry) => ('end' in entry ? [entry.end] : []))
      const wholes = part((entry) => ('whole' in entry ? [entry.whole] : []))
      const begins = part((entry) => ('begin' in entry ? [entry.begin] : []))
      await written.ensureSafe()
      const { found, changed } = await writeEntries(database, { ends, wholes, begins }).catch((error: unknown) => {
        written.markDoubtful()
        throw error
      })
      written.add([...ends, ...wholes.filter(({ invocationId }) => !changed.has(invocationId))])
      for (const [name, fn] of found) cacheFunction(functions, name, fn)
      return entries.map((entry) => {
        if ('begin' in entry) return found.get(entry.begin.name) ?? 'none'
        return 'whole' in entry && changed.has(entry.whole.invocationId) ? 'changed' : 'written'
      })
    },
    () => records.expected,
  )
  const records: Records = { roundTrips, functions, expected: 0 }
  known.set(database, records)
  return records
}

function cacheFunction(functions: Records['functions'], name: string, fn: FunctionRecord): void {
  functions.delete(name)
  functions.set(name, fn)
  const [oldest] = functions.keys()
  if (functions.size > maxCachedFunctions && oldest !== undefined) functions.delete(oldest)
}

/** Returns a function as of its last beginning. Its runs must use `recordInvocation`, which checks that it is current. */
export function cachedFunction({ database }: Tenant, name: string): FunctionRecord | undefined {
  return known.get(database)?.functions.get(name)
}

/**
 * Announces a record that will be written shortly, so that other records wait for it and share its transaction.
 * @returns a function to call when it is written or delayed
 */
export function expectRecord(tenant: Tenant): () => void {
  const records = known.get(tenant.database)
  if (records === undefined) return () => undefined
  let isExpected = true
  records.expected++
  return () => {
    if (isExpected) records.expected--
    isExpected = false
  }
}

/**
 * Writes the record and the log of a run that has ended, if its function is enabled and unchanged.
 * @returns false if it is not; then nothing was written, and the function is evicted from the cache
 * @throws RuntimeError if the database rejects it
 */
export async function recordInvocation(
  tenant: Tenant,
  run: WholeRun,
  fn: FunctionRecord,
  onError: (error: Error) => void,
): Promise<boolean> {
  const { roundTrips, functions } = recordsOf(tenant, onError)
  try {
    if ((await roundTrips.run({ whole: run })) === 'written') return true
    if (functions.get(fn.name) === fn) functions.delete(fn.name)
    return false
  } catch (error) {
    // The function was deleted after it was read.
    const thrown = databaseError(error, { function_is_there: noSuchFunction })
    if (thrown instanceof RuntimeError && thrown.code === 'NO_SUCH_FUNCTION') return false
    throw thrown
  }
}

/**
 * Finds a function and writes the record of its invocation, in one statement.
 * @throws RuntimeError NO_SUCH_FUNCTION, also for a disabled one; ClaimTaken
 */
export async function beginInvocation(
  tenant: Tenant,
  job: InvocationBegin,
  onError: (error: Error) => void,
): Promise<FunctionRecord> {
  if (!isName(job.name)) throw noSuchFunction()
  try {
    // A claim may wait for another transaction, so it does not share one with other records.
    const fn =
      job.claim === undefined
        ? await recordsOf(tenant, onError).roundTrips.run({ begin: job })
        : await beginClaimed(tenant, job, job.claim)
    if (typeof fn === 'string') throw noSuchFunction()
    return fn
  } catch (error) {
    // The function was deleted after it was read.
    throw databaseError(error, { function_is_there: noSuchFunction })
  }
}

interface Entries {
  ends: readonly InvocationEnd[]
  begins: readonly InvocationBegin[]
  wholes: readonly WholeRun[]
}

interface Found {
  /** The functions to run, by their names. */
  found: Map<string, FunctionRecord>
  /** Ids of whole runs whose function was changed meanwhile. */
  changed: Set<string>
}

/** Writes all entries in one transaction. */
async function writeEntries(database: Tenant['database'], { ends, begins, wholes }: Entries): Promise<Found> {
  const statements = {
    ends: ends.length === 0 ? undefined : endStatement(ends),
    wholes: wholes.length === 0 ? undefined : wholeStatement(wholes),
    begins: begins.length === 0 ? undefined : beginStatement(begins),
  }
  const given = Object.values(statements).filter((statement) => statement !== undefined)
  const completions = ends.flatMap(({ completion }) => completion ?? [])
  // What a run completes must not be repeated after a crash of Postgres.
  const commit = completions.length === 0 ? asyncCommit : syncCommit
  const [, ...results] = await database.run(context, commit, ...given, ...completions)
  const resultOf = (statement: Statement | undefined) =>
    statement === undefined ? undefined : results[given.indexOf(statement)]
  if ((resultOf(statements.ends)?.count ?? 0) < ends.length)
    await database.run(context, syncCommit, lostEndStatement(ends))
  return {
    found: new Map(resultOf(statements.begins)?.rows.map((row) => [String(row['name']), toFunction(row)])),
    changed: new Set(resultOf(statements.wholes)?.rows.map((row) => String(row['id']))),
  }
}

function beginStatement(begins: readonly InvocationBegin[]): Statement {
  // Names of functions need no quotes in the text of an array.
  const names = `{${[...new Set(begins.map(({ name }) => name))].join(',')}}`
  const records = begins.map(({ invocationId, name, trigger, userId }) => ({
    id: invocationId,
    name,
    trigger: recordedTrigger[trigger],
    user_id: userId,
  }))
  return sql(
    `with f as (select ${functionColumns} from functions f where f.name = any($1::text[]) and f.enabled),
     i as (insert into function_invocations (id, function_id, trigger, user_id) select b.id, f.id, b.trigger, b.user_id
       from jsonb_to_recordset($2::jsonb) as b (id text, name text, trigger text, user_id text) join f using (name))
     select * from f`,
    names,
    JSON.stringify(records),
  )
}

async function beginClaimed(
  { database }: Tenant,
  { name, invocationId, trigger, userId }: InvocationBegin,
  { text, values }: Claim,
): Promise<FunctionRecord | 'none'> {
  const { rows } = await database.query(
    context,
    `with f as (select ${functionColumns} from functions f where f.name = $1 and f.enabled),
     claim as (${text}),
     i as (insert into function_invocations (id, function_id, trigger, user_id)
       select $2, f.id, $3, $4 from f where exists (select from claim))
     select f.*, exists (select from claim) as claimed from f`,
    name,
    invocationId,
    recordedTrigger[trigger],
    userId,
    ...values,
  )
  const [row] = rows
  if (row === undefined) return 'none'
  if (row['claimed'] !== true) throw new ClaimTaken()
  return toFunction(row)
}

/**
 * Writes the end and the log of a recorded run, unless its function was deleted or its end is written already.
 * @throws RuntimeError if all retries fail; then the record stays interrupted
 */
export async function endInvocation(
  tenant: Tenant,
  job: InvocationEnd,
  onError: (error: Error) => void,
): Promise<void> {
  for (const pause of [...retryPauses, undefined]) {
    try {
      await recordsOf(tenant, onError).roundTrips.run({ end: job })
      return
    } catch (thrown) {
      const error = databaseError(thrown)
      if (pause === undefined || !isTemporary(error)) throw error
      await sleep(pause)
    }
  }
}

/**
 * Writes the bytes that a run in progress may have sent at most. Its end replaces them.
 * @throws RuntimeError if the database does not accept them
 */
export async function recordEgress({ database }: Tenant, invocationId: string, bytes: number): Promise<void> {
  try {
    await database.run(context, asyncCommit, egressStatement(invocationId, bytes))
  } catch (error) {
    throw databaseError(error)
  }
}

function isTemporary(error: unknown): boolean {
  return error instanceof RuntimeError && (error.code === 'DATABASE_UNAVAILABLE' || error.code === 'DATABASE_BUSY')
}

async function makeSafe(database: Tenant['database'], ends: readonly InvocationEnd[]): Promise<void> {
  const [, result] = await database.run(context, syncCommit, syncStatement(ends))
  if (result?.rows[0]?.['stored'] === ends.length) return
  // Some were lost in a crash of Postgres, or their function was deleted.
  await writeEntries(database, { ends, begins: [], wholes: [] })
  await database.run(context, syncCommit, syncStatement(ends))
}
