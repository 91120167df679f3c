// One record for each invocation (specification, section 2.5): there from the dispatch on as an interrupted one, so
// that a kill at any moment leaves exactly it; or written at once when the run is over, where nothing but its answer can tell
// that there was one. Those of a tenant that begin or end at the same time share a transaction.
//
// None waits for the disk: what it wrote is there for everybody at once, and safe a moment later, with a commit that waits
// (written-ends.ts). Should Postgres be killed before, what is lost is written again.
import { setTimeout as sleep } from 'node:timers/promises'
import { databaseError } from '../../database/database-error.ts'
import { SharedRoundTrips } from '../../database/shared-round-trips.ts'
import { sql, type Statement, type Value } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { isName, type FunctionRecord } from '../function.ts'
import { functionColumns, noSuchFunction, toFunction } from '../function-store.ts'
import {
  endStatement,
  lostEndStatement,
  recordedTrigger,
  safeStatement,
  wholeStatement,
  type InvocationEnd,
  type WholeRun,
} from './invocation-end.ts'
import type { TriggerKind } from './trigger-kind.ts'
import { WrittenEnds } from './written-ends.ts'

/** Milliseconds before each further attempt to write an end: a server that was killed is back within seconds. */
const attempts = [100, 300, 1_000, 3_000]

const context = { role: 'service', reason: 'record of an invocation' } as const

/**
 * A plan that was made while there were few records is kept when there are many: records are always found by their ids. And it
 * is kept: to plan these statements anew takes Postgres longer than to run them.
 */
const byIndex = "set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)"
const unhurried = sql(`select ${byIndex}, set_config('synchronous_commit', 'off', true)`)
const expedited = sql(`select ${byIndex}`)

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

interface InvocationBegin {
  /** The function's. */
  name: string
  invocationId: string
  trigger: TriggerKind
  userId: string | null
  claim?: Claim | undefined
}

type Entry = { begin: InvocationBegin } | { end: InvocationEnd } | { whole: WholeRun }
/** Of a beginning its function, if there is one to run. Of a whole run whether the function is still what was run. */
type Entered = FunctionRecord | 'none' | 'written' | 'changed'

interface Records {
  roundTrips: SharedRoundTrips<Entry, Entered>
  /** Functions as they were when they were last begun, by their names; the longest unused first. */
  functions: Map<string, FunctionRecord>
  /** Runs that will be recorded in a moment. */
  expected: number
}

const maxRemembered = 1_000

const known = new WeakMap<Tenant['database'], Records>()

function recordsOf({ id, database }: Tenant, onError: (error: Error) => void): Records {
  const before = known.get(database)
  if (before !== undefined) return before
  const functions: Records['functions'] = new Map()
  const written = new WrittenEnds({
    makeSafe: (ends) => makeSafe(database, ends),
    isPassing: (cause) => isPassing(databaseError(cause)),
    onLoss: (cause) => onError(new Error(`${id}: ends of invocations may be lost`, { cause })),
  })
  const roundTrips: Records['roundTrips'] = new SharedRoundTrips(
    async (entries) => {
      const part = <T>(read: (entry: Entry) => T[]): T[] => entries.flatMap(read)
      const ends = part((entry) => ('end' in entry ? [entry.end] : []))
      const wholes = part((entry) => ('whole' in entry ? [entry.whole] : []))
      const begins = part((entry) => ('begin' in entry ? [entry.begin] : []))
      await written.settled()
      const { found, changed } = await enter(database, { ends, wholes, begins }).catch((error: unknown) => {
        written.doubt()
        throw error
      })
      written.add([...ends, ...wholes.filter(({ invocationId }) => !changed.has(invocationId))])
      for (const [name, fn] of found) remember(functions, name, fn)
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

function remember(functions: Records['functions'], name: string, fn: FunctionRecord): void {
  functions.delete(name)
  functions.set(name, fn)
  const [oldest] = functions.keys()
  if (functions.size > maxRemembered && oldest !== undefined) functions.delete(oldest)
}

/** The function as it was last seen: what is run on its word must go to `recordInvocation`, which knows whether it still holds. */
export function rememberedFunction({ database }: Tenant, name: string): FunctionRecord | undefined {
  return known.get(database)?.functions.get(name)
}

/**
 * Announces a record that comes soon: it is worth waiting for, so that more of them share a transaction.
 * @returns to be called when it is there, or will not come soon
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
 * Writes the record of a run that is over, and its log, if the function is still there, enabled, and as it was run.
 * @returns false when it is not; then nothing was written, and it is not remembered any more
 * @throws RuntimeError when the database does not take it
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
    // Deleted between the look and the record.
    const thrown = databaseError(error, { function_is_there: noSuchFunction })
    if (thrown instanceof RuntimeError && thrown.code === 'NO_SUCH_FUNCTION') return false
    throw thrown
  }
}

/**
 * Finds the function and writes the record, in one statement.
 * @throws RuntimeError NO_SUCH_FUNCTION also for a disabled one; ClaimTaken
 */
export async function beginInvocation(
  tenant: Tenant,
  job: InvocationBegin,
  onError: (error: Error) => void,
): Promise<FunctionRecord> {
  if (!isName(job.name)) throw noSuchFunction()
  try {
    // A claim may wait for another transaction's: it keeps nobody else waiting.
    const fn =
      job.claim === undefined
        ? await recordsOf(tenant, onError).roundTrips.run({ begin: job })
        : await beginClaimed(tenant, job, job.claim)
    if (typeof fn === 'string') throw noSuchFunction()
    return fn
  } catch (error) {
    // Deleted between the look and the record.
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
  /** Ids of whole runs whose function is not what was run. */
  changed: Set<string>
}

/** All as one transaction. */
async function enter(database: Tenant['database'], { ends, begins, wholes }: Entries): Promise<Found> {
  const statements = {
    ends: ends.length === 0 ? undefined : endStatement(ends),
    wholes: wholes.length === 0 ? undefined : wholeStatement(wholes),
    begins: begins.length === 0 ? undefined : beginStatement(begins),
  }
  const given = Object.values(statements).filter((statement) => statement !== undefined)
  const [, ...results] = await database.run(context, unhurried, ...given)
  const resultOf = (statement: Statement | undefined) =>
    statement === undefined ? undefined : results[given.indexOf(statement)]
  if ((resultOf(statements.ends)?.count ?? 0) < ends.length)
    await database.run(context, expedited, lostEndStatement(ends))
  return {
    found: new Map(resultOf(statements.begins)?.rows.map((row) => [String(row['name']), toFunction(row)])),
    changed: new Set(resultOf(statements.wholes)?.rows.map((row) => String(row['id']))),
  }
}

function beginStatement(begins: readonly InvocationBegin[]): Statement {
  // Names need no quotes in an array's text.
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
 * Writes the end of the run and its log. Nothing happens when its function was deleted, or its end is written already.
 * @throws RuntimeError when the database does not take it, after some time: then the record stays an interrupted one
 */
export async function endInvocation(
  tenant: Tenant,
  job: InvocationEnd,
  onError: (error: Error) => void,
): Promise<void> {
  for (const pause of [...attempts, undefined]) {
    try {
      await recordsOf(tenant, onError).roundTrips.run({ end: job })
      return
    } catch (thrown) {
      const error = databaseError(thrown)
      if (pause === undefined || !isPassing(error)) throw error
      await sleep(pause)
    }
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof RuntimeError && (error.code === 'DATABASE_UNAVAILABLE' || error.code === 'DATABASE_BUSY')
}

async function makeSafe(database: Tenant['database'], ends: readonly InvocationEnd[]): Promise<void> {
  const [, poll] = await database.run(context, expedited, safeStatement(ends))
  if (poll?.rows[0]?.['there'] === ends.length) return
  // Gone with a crash of Postgres, or with their function.
  await enter(database, { ends, begins: [], wholes: [] })
  await database.run(context, expedited, safeStatement(ends))
}
