// One record for each invocation (specification, section 2.5): there from the dispatch on as an interrupted one, so
// that a kill at any moment leaves exactly it.
import { databaseError } from '../../database/database-error.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { FunctionRecord } from '../function.ts'
import { functionColumns, noSuchFunction, toFunction } from '../function-store.ts'
import type { TriggerKind } from './invoke.ts'

const context = { role: 'service', reason: 'record of an invocation' } as const

export interface InvocationEnd {
  status: 'success' | 'error' | 'timeout'
  durationMilliseconds: number
  /** Bytes. */
  memoryPeak: number
  errorMessage: string | null
}

export interface InvocationBegin {
  /** The function's. */
  name: string
  invocationId: string
  trigger: TriggerKind
  userId: string | null
}

/** The specification has three kinds for records; a webhook comes over HTTP. */
const recordedTrigger = { http: 'http', webhook: 'http', database: 'database', schedule: 'schedule' } as const

/**
 * Finds the function and writes the record, in one statement.
 * @throws RuntimeError NO_SUCH_FUNCTION also for a disabled one
 */
export async function beginInvocation(tenant: Tenant, { name, invocationId, trigger, userId }: InvocationBegin): Promise<FunctionRecord> {
  try {
    const { rows } = await tenant.database.query(
      context,
      `with f as (select * from functions where name = $1 and enabled),
       i as (insert into function_invocations (id, function_id, trigger, user_id) select $2, f.id, $3, $4 from f)
       select ${functionColumns} from f`,
      name, invocationId, recordedTrigger[trigger], userId,
    )
    if (rows[0] === undefined) throw noSuchFunction()
    return toFunction(rows[0])
  } catch (error) {
    // Deleted between the look and the record.
    throw databaseError(error, { function_is_there: noSuchFunction })
  }
}

/** @throws RuntimeError when the database does not take it: then the record stays an interrupted one */
export async function endInvocation(tenant: Tenant, invocationId: string, { status, durationMilliseconds, memoryPeak, errorMessage }: InvocationEnd): Promise<void> {
  try {
    await tenant.database.query(
      context,
      'update function_invocations set status = $1, duration_ms = $2, memory_peak = $3, error_message = $4 where id = $5',
      status, Math.round(durationMilliseconds), memoryPeak, errorMessage, invocationId,
    )
  } catch (error) {
    throw databaseError(error)
  }
}
