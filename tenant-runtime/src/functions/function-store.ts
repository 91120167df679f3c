// Functions in the tenant's database. Only the service role manages them; invocations read them as the service role.
import { createHash, timingSafeEqual } from 'node:crypto'
import { databaseError, type ErrorMap } from '../database/database-error.ts'
import type { Row, Value } from '../database/statement.ts'
import { RuntimeError } from '../errors.ts'
import { eventTime } from '../events/event-log.ts'
import type { RlsContext } from '../tenancy/rls-context.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { withinLimits, type FunctionConfig, type FunctionRecord, type Trigger } from './function.ts'

const errors: ErrorMap = {
  function_name_taken: (cause) =>
    new RuntimeError('FUNCTION_EXISTS', 'A function of this name already exists.', { cause }),
}

export const functionColumns =
  'f.id, f.name, f.description, f.trigger_type, f.wasm_hash, f.config, f.enabled, f.created_at, f.updated_at'

export function toFunction(row: Row): FunctionRecord {
  // The table's columns and checks ensure these types.
  return {
    id: String(row['id']),
    name: String(row['name']),
    description: String(row['description']),
    trigger: JSON.parse(String(row['trigger_type'])) as Trigger,
    wasmHash: String(row['wasm_hash']),
    config: withinLimits(row['config'] as FunctionConfig),
    enabled: row['enabled'] === true,
    createdAt: String(row['created_at']),
    updatedAt: String(row['updated_at']),
  }
}

export function hashOf(wasm: Uint8Array): string {
  return createHash('sha256').update(wasm).digest('hex')
}

interface NewFunction {
  name: string
  description: string
  trigger: Trigger
  config: FunctionConfig
  wasm: Buffer
}

/**
 * Returns a statement that changes functions and writes an event for each.
 * @param change SQL that returns the functions it changes
 * @param others further CTEs, each with a comma at its end
 */
function withEvents(type: string, change: string, others = ''): string {
  return `with f as (${change}), ${others} events as (
    insert into event_log (type, payload) select '${type}', jsonb_build_object('type', '${type}', 'name', f.name,
      'wasm_hash', f.wasm_hash, 'enabled', f.enabled, 'timestamp', ${eventTime}) from f)
    select ${functionColumns} from f`
}

/** Stores a new function. @throws RuntimeError FUNCTION_EXISTS */
export async function insertFunction(
  tenant: Tenant,
  context: RlsContext,
  { name, description, trigger, config, wasm }: NewFunction,
): Promise<FunctionRecord> {
  const change =
    'insert into functions (name, description, trigger_type, wasm_hash, wasm_data, config) values ($1, $2, $3, $4, $5, $6) returning *'
  const { rows } = await query(
    tenant,
    context,
    withEvents('functions.deployed', change),
    name,
    description,
    JSON.stringify(trigger),
    hashOf(wasm),
    wasm,
    JSON.stringify(config),
  )
  return toFunctionOrThrow(rows[0])
}

interface FunctionWithRuns extends FunctionRecord {
  invocationCount: number
  lastInvocation: string | null
}

/** Finds a function and counts its invocations. @throws RuntimeError NO_SUCH_FUNCTION */
export async function findFunction(tenant: Tenant, context: RlsContext, name: string): Promise<FunctionWithRuns> {
  const { rows } = await query(
    tenant,
    context,
    `select ${functionColumns}, i.count, i.last from functions f,
     lateral (select count(*) as count, max(timestamp) as last from function_invocations where function_id = f.id) i where f.name = $1`,
    name,
  )
  const last = rows[0]?.['last']
  return {
    ...toFunctionOrThrow(rows[0]),
    invocationCount: Number(rows[0]?.['count']),
    lastInvocation: typeof last === 'string' ? last : null,
  }
}

/** Checks that a function exists. @throws RuntimeError NO_SUCH_FUNCTION */
export async function expectFunction(tenant: Tenant, context: RlsContext, name: string): Promise<void> {
  const { rows } = await query(tenant, context, 'select 1 from functions where name = $1', name)
  if (rows.length === 0) throw noSuchFunction()
}

export async function listFunctions(tenant: Tenant, context: RlsContext): Promise<FunctionRecord[]> {
  const { rows } = await query(tenant, context, `select ${functionColumns} from functions f order by f.name`)
  return rows.map(toFunction)
}

/** Finds a function's id by its name. @throws RuntimeError NO_SUCH_FUNCTION */
export async function functionId(tenant: Tenant, context: RlsContext, name: string): Promise<string> {
  const { rows } = await query(tenant, context, 'select id from functions where name = $1', name)
  if (rows[0] === undefined) throw noSuchFunction()
  return String(rows[0]['id'])
}

interface FunctionChange {
  config: FunctionConfig
  description: string
  trigger: Trigger
  enabled: boolean
  wasm: Buffer | undefined
}

/**
 * Replaces all fields of a function if it has not changed since it was read.
 * @throws RuntimeError CONFLICT if another request changed it meanwhile
 */
export async function updateFunction(
  tenant: Tenant,
  context: RlsContext,
  before: FunctionRecord,
  change: FunctionChange,
): Promise<FunctionRecord> {
  const update =
    'update functions set config = $1, description = $2, trigger_type = $3, enabled = $4, wasm_hash = $5,' +
    ' wasm_data = coalesce($6, wasm_data),' +
    ' trigger_since = case when trigger_type = $3 and enabled = $4 then trigger_since else now() end,' +
    " updated_at = greatest(now(), updated_at + interval '1 millisecond') where id = $7 and updated_at = $8::timestamptz returning *"
  const { rows } = await query(
    tenant,
    context,
    withEvents('functions.updated', update),
    JSON.stringify(change.config),
    change.description,
    JSON.stringify(change.trigger),
    change.enabled,
    change.wasm === undefined ? before.wasmHash : hashOf(change.wasm),
    change.wasm ?? null,
    before.id,
    before.updatedAt,
  )
  if (rows[0] === undefined)
    throw new RuntimeError('CONFLICT', 'Another request has changed the function. Read it again and retry.')
  return toFunction(rows[0])
}

/** Deletes a function and its deliveries. @throws RuntimeError NO_SUCH_FUNCTION */
export async function deleteFunction(tenant: Tenant, context: RlsContext, name: string): Promise<FunctionRecord> {
  const { rows } = await query(
    tenant,
    context,
    withEvents(
      'functions.deleted',
      'delete from functions where name = $1 returning *',
      'deliveries as (delete from function_deliveries d using f where d.function_id = f.id),',
    ),
    name,
  )
  return toFunctionOrThrow(rows[0])
}

/**
 * Reads a function with its module.
 * @throws RuntimeError NO_SUCH_FUNCTION; HOST_FUNCTION_ERROR if the bytes do not match the hash (FUNC-I2)
 */
export async function loadFunction(tenant: Tenant, id: string): Promise<{ fn: FunctionRecord; wasm: Buffer }> {
  const { rows } = await tenant.database.query(
    { role: 'service', reason: 'module of an invocation' },
    `select ${functionColumns}, f.wasm_data from functions f where f.id = $1`,
    id,
  )
  const fn = toFunctionOrThrow(rows[0])
  return { fn, wasm: checkedModule(rows[0]?.['wasm_data'], fn.wasmHash) }
}

/**
 * Reads a module's bytes.
 * @throws RuntimeError NO_SUCH_FUNCTION if another module has replaced it; HOST_FUNCTION_ERROR if the bytes do not match
 *   the hash (FUNC-I2)
 */
export async function loadModule(tenant: Tenant, { id, wasmHash }: FunctionRecord): Promise<Buffer> {
  const { rows } = await tenant.database.query(
    { role: 'service', reason: 'module of an invocation' },
    'select wasm_data from functions where id = $1 and wasm_hash = $2',
    id,
    wasmHash,
  )
  if (rows[0] === undefined) throw noSuchFunction()
  return checkedModule(rows[0]['wasm_data'], wasmHash)
}

function checkedModule(data: unknown, wasmHash: string): Buffer {
  if (!Buffer.isBuffer(data) || !timingSafeEqual(Buffer.from(hashOf(data)), Buffer.from(wasmHash))) {
    throw new RuntimeError('HOST_FUNCTION_ERROR', 'The stored module does not match its hash. Deploy it again.')
  }
  return data
}

export function noSuchFunction(): RuntimeError {
  return new RuntimeError('NO_SUCH_FUNCTION', 'The function does not exist or is disabled.')
}

function toFunctionOrThrow(row: Row | undefined): FunctionRecord {
  if (row === undefined) throw noSuchFunction()
  return toFunction(row)
}

async function query(tenant: Tenant, context: RlsContext, text: string, ...values: Value[]) {
  try {
    return await tenant.database.query(context, text, ...values)
  } catch (error) {
    throw databaseError(error, errors)
  }
}
