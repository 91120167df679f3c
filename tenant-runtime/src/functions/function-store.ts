// Functions in the tenant's database. Only the service role manages them; an invocation looks them up on its behalf.
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
    new RuntimeError('FUNCTION_EXISTS', 'a function of this name exists already', { cause }),
}

export const functionColumns =
  'f.id, f.name, f.description, f.trigger_type, f.wasm_hash, f.config, f.enabled, f.created_at, f.updated_at'

export function toFunction(row: Row): FunctionRecord {
  // Columns and checks of the table hold these to their types.
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

/** `change` returns the functions it touched; each is told of in the same statement. */
function reported(type: string, change: string, others = ''): string {
  return `with f as (${change}), ${others} told as (
    insert into event_log (type, payload) select '${type}', jsonb_build_object('type', '${type}', 'name', f.name,
      'wasm_hash', f.wasm_hash, 'enabled', f.enabled, 'timestamp', ${eventTime}) from f)
    select ${functionColumns} from f`
}

/** @throws RuntimeError FUNCTION_EXISTS */
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
    reported('functions.deployed', change),
    name,
    description,
    JSON.stringify(trigger),
    hashOf(wasm),
    wasm,
    JSON.stringify(config),
  )
  return one(rows[0])
}

interface FunctionWithRuns extends FunctionRecord {
  invocationCount: number
  lastInvocation: string | null
}

/** @throws RuntimeError NO_SUCH_FUNCTION */
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
    ...one(rows[0]),
    invocationCount: Number(rows[0]?.['count']),
    lastInvocation: typeof last === 'string' ? last : null,
  }
}

/** @throws RuntimeError NO_SUCH_FUNCTION */
export async function expectFunction(tenant: Tenant, context: RlsContext, name: string): Promise<void> {
  const { rows } = await query(tenant, context, 'select 1 from functions where name = $1', name)
  if (rows.length === 0) throw noSuchFunction()
}

export async function listFunctions(tenant: Tenant, context: RlsContext): Promise<FunctionRecord[]> {
  const { rows } = await query(tenant, context, `select ${functionColumns} from functions f order by f.name`)
  return rows.map(toFunction)
}

/** @throws RuntimeError NO_SUCH_FUNCTION */
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
 * Writes the whole of a function anew, if it is still as it was read.
 * @throws RuntimeError CONFLICT when somebody else changed it meanwhile, NO_SUCH_FUNCTION
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
    reported('functions.updated', update),
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
    throw new RuntimeError('CONFLICT', 'the function was changed by another request meanwhile; read it and try again')
  return toFunction(rows[0])
}

/** @throws RuntimeError NO_SUCH_FUNCTION */
export async function deleteFunction(tenant: Tenant, context: RlsContext, name: string): Promise<FunctionRecord> {
  const { rows } = await query(
    tenant,
    context,
    reported(
      'functions.deleted',
      'delete from functions where name = $1 returning *',
      'left_over as (delete from function_deliveries d using f where d.function_id = f.id),',
    ),
    name,
  )
  return one(rows[0])
}

/**
 * The function as it is now, with its module.
 * @throws RuntimeError NO_SUCH_FUNCTION; HOST_FUNCTION_ERROR when the bytes are not those of the hash (FUNC-I2)
 */
export async function loadFunction(tenant: Tenant, id: string): Promise<{ fn: FunctionRecord; wasm: Buffer }> {
  const { rows } = await tenant.database.query(
    { role: 'service', reason: 'module of an invocation' },
    `select ${functionColumns}, f.wasm_data from functions f where f.id = $1`,
    id,
  )
  const fn = one(rows[0])
  return { fn, wasm: checkedModule(rows[0]?.['wasm_data'], fn.wasmHash) }
}

/**
 * The module's bytes, which must be those of the hash (FUNC-I2).
 * @throws RuntimeError NO_SUCH_FUNCTION when another module took its place
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
    throw new RuntimeError('HOST_FUNCTION_ERROR', 'the stored module is not the one that was deployed; deploy it again')
  }
  return data
}

export function noSuchFunction(): RuntimeError {
  return new RuntimeError('NO_SUCH_FUNCTION', 'there is no such function, or it is disabled')
}

function one(row: Row | undefined): FunctionRecord {
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
