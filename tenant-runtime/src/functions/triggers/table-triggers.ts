// Installs the triggers of a home's tables for the functions that listen: after a function was changed, in every reload of
// schemas, and after an attempt that failed.
import type pg from 'pg'
import { asPublisher } from '../../database/as-publisher.ts'
import { sql, type Row, type Statement } from '../../database/statement.ts'
import { RoundTripError } from '../../database/round-trip-error.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { storedTrigger, type FunctionRecord } from '../function.ts'
import { planTriggers, triggerNames, triggerStateText, type Listener, type TriggerState } from './table-trigger-sql.ts'

const context: RlsContext = { role: 'service', reason: 'triggers of functions' }

/** Lock timeouts of the attempts. They are short, because writers of the table wait meanwhile. */
const lockMilliseconds = [100, 200, 400]
/** Lock timeout of steps that can wait. */
const idleLockMilliseconds = 50

/** Triggers of the enabled functions. Invalid texts are ignored. */
const listenersText = `select id, trigger_type from functions where enabled and trigger_type like '{"Database"%'`

/**
 * Installs the triggers in the transaction of a reload, after its changes of tables.
 * @throws pg.DatabaseError
 */
export async function followTables(client: pg.Client): Promise<void> {
  const listeners = await client.query<Row>(listenersText)
  const state = await client.query<Row>(triggerStateText)
  const steps = planTriggers(readState(state.rows[0]), readListeners(listeners.rows))
  for (const { sql, canWait } of steps) await (canWait ? tryStep(client, sql) : client.query(sql))
}

async function tryStep(client: pg.Client, sql: string): Promise<void> {
  const { rows } = await client.query<Row>('show lock_timeout')
  await client.query(`savepoint step; set local lock_timeout = ${idleLockMilliseconds}`)
  try {
    await client.query(sql)
    await client.query("select set_config('lock_timeout', $1, true)", [rows[0]?.['lock_timeout']])
    await client.query('release savepoint step')
  } catch (error) {
    if (!isBusy(error)) throw error
    // The next call does it. Until then, the trigger writes no deliveries.
    await client.query('rollback to savepoint step')
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === '55P03' || error.code === '40P01')
}

/** Statements whose rows `isSettled` checks. */
export const missingStatements: readonly Statement[] = [sql(listenersText), sql(triggerStateText)]

/** Whether the home's triggers are complete, except for steps that can wait. */
export function isSettled(listeners: readonly Row[], state: Row | undefined): boolean {
  return planTriggers(readState(state), readListeners(listeners)).every(({ canWait }) => canWait)
}

/**
 * Installs the triggers after a change of functions, without a reload of schemas.
 * @throws RoundTripError if a table is in use or the database does not respond
 */
export async function installTriggers(
  tenant: Tenant,
  [milliseconds = 0, ...further]: readonly number[] = lockMilliseconds,
): Promise<void> {
  try {
    await tenant.database.withOwner(async (client) => {
      await client.query(`set local lock_timeout = ${milliseconds}`)
      // Only one installation or reload runs at a time.
      await asPublisher(client, () => client.query('lock table applied_schemas in share row exclusive mode'))
      await followTables(client)
    })
  } catch (error) {
    if (further.length === 0 || !(error instanceof RoundTripError) || !isBusy(error.cause)) throw error
    await installTriggers(tenant, further)
  }
}

/** Reads from the table's triggers whether a function receives changes. */
export async function triggerStatus(
  { database }: Tenant,
  { id, enabled, trigger }: FunctionRecord,
): Promise<{ trigger_status: 'ready' | 'waiting'; trigger_reason?: string } | undefined> {
  if (typeof trigger !== 'object' || !('Database' in trigger)) return undefined
  const { table, operation } = trigger.Database
  if (!enabled) return { trigger_status: 'waiting', trigger_reason: 'The function is disabled.' }
  const { rows } = await database.query(
    context,
    `select exists (select from pg_trigger t join pg_proc p on p.oid = t.tgfoid
       where t.tgrelid = c.oid and t.tgname = $2 and t.tgenabled <> 'D' and strpos(p.prosrc, $3) > 0) as is_ready
     from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relname = $1`,
    table,
    triggerNames[operation],
    id,
  )
  if (rows[0]?.['is_ready'] === true) return { trigger_status: 'ready' }
  const reason =
    rows[0] !== undefined
      ? `The table "${table}" is in use. The installation is retried.`
      : `The table "${table}" does not exist yet. The reload that creates it starts the deliveries.`
  return { trigger_status: 'waiting', trigger_reason: reason }
}

function readState(row: Row | undefined): TriggerState {
  return JSON.parse(String(row?.['state'])) as TriggerState
}

function readListeners(rows: readonly Row[]): Listener[] {
  return rows.flatMap((row) => {
    // Only schedules use the time.
    const trigger = storedTrigger(String(row['trigger_type']), new Date(0))
    return typeof trigger === 'object' && 'Database' in trigger
      ? [{ functionId: String(row['id']), ...trigger.Database }]
      : []
  })
}
