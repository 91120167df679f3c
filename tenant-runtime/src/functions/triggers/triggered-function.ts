// Reads the functions of a home that have a schedule or listen to changes.
import { sql, type Row } from '../../database/statement.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import { storedTrigger } from '../function.ts'
import type { Schedule } from './schedule.ts'
import { isSettled, missingStatements } from './table-triggers.ts'

const context: RlsContext = { role: 'service', reason: 'triggers of functions' }

export interface TriggeredFunction {
  id: string
  name: string
  /** The trigger as the table has it. A change of the text is a change of the trigger. */
  triggerType: string
  schedule: Schedule | undefined
  /** Planned times up to this time are done or before the schedule was set. */
  since: Date
}

export interface Triggers {
  scheduled: TriggeredFunction[]
  /** Functions that listen to changes or have waiting deliveries. */
  listening: TriggeredFunction[]
  /** Whether the triggers of tables are complete. */
  isSettled: boolean
}

export async function readTriggers({ database }: Tenant, now: Date): Promise<Triggers> {
  const [found, ...missing] = await database.read(
    context,
    sql(
      `select f.id, f.name, f.trigger_type,
         greatest(f.trigger_since, (select max(planned_at) from function_schedule_runs r where r.function_id = f.id)) as since,
         f.trigger_type like '{"Schedule"%' as is_scheduled,
         f.trigger_type like '{"Database"%' or exists (
           select from function_deliveries d where d.function_id = f.id and d.state = 'waiting') as is_listening
       from functions f where f.enabled`,
    ),
    ...missingStatements,
  )
  const rows = found?.rows ?? []
  return {
    scheduled: rows.filter((row) => row['is_scheduled'] === true).map((row) => toTriggered(row, now)),
    listening: rows.filter((row) => row['is_listening'] === true).map((row) => toTriggered(row, now)),
    isSettled: isSettled(missing[0]?.rows ?? [], missing[1]?.rows[0]),
  }
}

function toTriggered(row: Row, now: Date): TriggeredFunction {
  const triggerType = String(row['trigger_type'])
  const trigger = storedTrigger(triggerType, now)
  return {
    id: String(row['id']),
    name: String(row['name']),
    triggerType,
    schedule: typeof trigger === 'object' && 'Schedule' in trigger ? trigger.Schedule : undefined,
    since: new Date(String(row['since'])),
  }
}
