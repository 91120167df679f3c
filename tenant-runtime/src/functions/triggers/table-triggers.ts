// Brings the triggers of a home's tables to the functions that listen: after a function changed, within every reload of
// schemas, and where an earlier try was cut off.
import type pg from 'pg'
import { asPublisher } from '../../database/as-publisher.ts'
import { sql, type Row, type Statement } from '../../database/statement.ts'
import { RoundTripError } from '../../database/round-trip-error.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { storedTrigger, type FunctionRecord } from '../function.ts'
import { planTriggers, triggerNames, triggerStateText, type Listener, type TriggerState } from './table-trigger-sql.ts'

const context: RlsContext = { role: 'service', reason: 'triggers of functions' }

/** How long it waits for a lock, try after try; writers of the table wait behind it. */
const lockMilliseconds = [100, 200, 400]
/** What can wait does not keep writers waiting. */
const idleLockMilliseconds = 50

/** Of functions that are enabled. Texts that are no trigger are nobody's. */
const listenersText = `select id, trigger_type from functions where enabled and trigger_type like '{"Database"%'`

/**
 * The step of a reload, in its transaction: the tables are as they will be.
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
    // The next one does it; until then the trigger finds nobody to tell.
    await client.query('rollback to savepoint step')
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === '55P03' || error.code === '40P01')
}

/** What there is to do, told without doing it. */
export const missingStatements: readonly Statement[] = [sql(listenersText), sql(triggerStateText)]

/** True when the home's tables tell whom they should, but for what can wait. */
export function isSettled(listeners: readonly Row[], state: Row | undefined): boolean {
  return planTriggers(readState(state), readListeners(listeners)).every(({ canWait }) => canWait)
}

/**
 * The same for a change of functions: no table is touched but for its triggers, and nothing of schemas takes effect.
 * @throws TripError when a table is in use, or the database does not answer
 */
export async function installTriggers(
  tenant: Tenant,
  [milliseconds = 0, ...further]: readonly number[] = lockMilliseconds,
): Promise<void> {
  try {
    await tenant.database.withOwner(async (client) => {
      await client.query(`set local lock_timeout = ${milliseconds}`)
      // One at a time, reloads among them.
      await asPublisher(client, () => client.query('lock table applied_schemas in share row exclusive mode'))
      await followTables(client)
    })
  } catch (error) {
    if (further.length === 0 || !(error instanceof RoundTripError) || !isBusy(error.cause)) throw error
    await installTriggers(tenant, further)
  }
}

/** Whether a function is told of changes; asked of the tables themselves. */
export async function triggerStatus(
  { database }: Tenant,
  { id, enabled, trigger }: FunctionRecord,
): Promise<{ trigger_status: 'ready' | 'waiting'; trigger_reason?: string } | undefined> {
  if (typeof trigger !== 'object' || !('Database' in trigger)) return undefined
  const { table, operation } = trigger.Database
  if (!enabled) return { trigger_status: 'waiting', trigger_reason: 'the function is disabled' }
  const { rows } = await database.query(
    context,
    `select exists (select from pg_trigger t join pg_proc p on p.oid = t.tgfoid
       where t.tgrelid = c.oid and t.tgname = $2 and t.tgenabled <> 'D' and strpos(p.prosrc, $3) > 0) as is_told
     from pg_class c where c.relnamespace = current_schema()::regnamespace and c.relname = $1`,
    table,
    triggerNames[operation],
    id,
  )
  if (rows[0]?.['is_told'] === true) return { trigger_status: 'ready' }
  const reason =
    rows[0] !== undefined
      ? `the table "${table}" is in use; it is tried again`
      : `there is no table "${table}" yet; the reload that makes it begins`
  return { trigger_status: 'waiting', trigger_reason: reason }
}

function readState(row: Row | undefined): TriggerState {
  return JSON.parse(String(row?.['state'])) as TriggerState
}

function readListeners(rows: readonly Row[]): Listener[] {
  return rows.flatMap((row) => {
    // The time matters to schedules alone.
    const trigger = storedTrigger(String(row['trigger_type']), new Date(0))
    return typeof trigger === 'object' && 'Database' in trigger
      ? [{ functionId: String(row['id']), ...trigger.Database }]
      : []
  })
}
