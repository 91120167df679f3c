// Plans the SQL for the triggers of tables that write deliveries for functions, from the existing triggers and the functions
// that listen. A trigger runs once for each statement that changes records, in the writer's transaction. Pure.
import { createHash } from 'node:crypto'
import { eventTime } from '../../events/event-log.ts'
import { textLiteral } from '../../rest/registry/ddl-values.ts'
import { nameOf } from '../../rest/registry/table-parts.ts'
import { identifier } from '../../rest/sql/names.ts'

export const operations = ['Insert', 'Update', 'Delete'] as const
export type Operation = (typeof operations)[number]

export interface Listener {
  functionId: string
  table: string
  operation: Operation
}

interface TriggeredTable {
  name: string
  /** Columns of the primary key. */
  key: string[]
  /** The names of its existing triggers, out of `triggerNames`. */
  triggers: string[]
}

/** The tables of a home except those of the service, and the existing functions of triggers with the MD5 of their texts. */
export interface TriggerState {
  tables: TriggeredTable[]
  routines: { name: string; hash: string }[]
}

interface TriggerStep {
  sql: string
  /** Whether the step can be done later, because it is only a cleanup and its lock would delay writers. */
  canWait: boolean
}

/** Names of the triggers, by operation. */
export const triggerNames = {
  Insert: 'functions_insert',
  Update: 'functions_update',
  Delete: 'functions_delete',
} as const

/** Maximum bytes of a record and its old version in a delivery. A larger change has only the keys; functions can read the rest. */
const maxRecordBytes = 1024 * 1024

/** The text by which functions of triggers are recognised. Homes store it, so it must not change. */
const mark = '/* functions are told of changes */'

/** The query for a `TriggerState`, in column `state`. Any login of the home can run it. */
export const triggerStateText = `select json_build_object(
  'tables', (select coalesce(json_agg(json_build_object('name', c.relname,
      'key', (select coalesce(json_agg(a.attname order by k.ordinal), '[]')
        from pg_index i, unnest(i.indkey::smallint[]) with ordinality k (number, ordinal), pg_attribute a
        where i.indrelid = c.oid and i.indisprimary and a.attrelid = c.oid and a.attnum = k.number),
      'triggers', (select coalesce(json_agg(t.tgname), '[]') from pg_trigger t
        where t.tgrelid = c.oid and t.tgname in (${Object.values(triggerNames).map(textLiteral).join(', ')})))), '[]')
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = current_schema() and c.relkind in ('r', 'p') and c.relowner <> n.nspowner),
  'routines', (select coalesce(json_agg(json_build_object('name', p.proname, 'hash', md5(p.prosrc))), '[]') from pg_proc p
    where p.pronamespace = current_schema()::regnamespace and starts_with(p.prosrc, ${textLiteral(mark)})))::text as state`

/** Plans the steps. Those that can wait come last; without them, all deliveries are correct. */
export function planTriggers({ tables, routines }: TriggerState, listeners: readonly Listener[]): TriggerStep[] {
  const hashes = new Map(routines.map(({ name, hash }) => [name, hash]))
  const now: string[] = []
  const later: string[] = []
  for (const { name: table, key, triggers } of tables) {
    const tableListeners = listeners.filter((listener) => listener.table === table)
    const routine = routineName(table)
    const hash = hashes.get(routine)
    hashes.delete(routine)
    if (tableListeners.length === 0 && hash === undefined) continue
    const wanted = bodyOf(key, tableListeners)
    if (hashOf(wanted) !== hash) now.push(routineSql(routine, wanted))
    for (const operation of operations) {
      const name = triggerNames[operation]
      const isNeeded = tableListeners.some((listener) => listener.operation === operation)
      if (isNeeded && !triggers.includes(name)) now.push(triggerSql(table, operation))
      if (!isNeeded && triggers.includes(name)) later.push(`drop trigger if exists ${name} on ${identifier(table)}`)
    }
    if (tableListeners.length === 0) later.push(`drop function if exists ${identifier(routine)}()`)
  }
  // Functions of dropped tables.
  for (const name of hashes.keys()) later.push(`drop function if exists ${identifier(name)}()`)
  return [...now.map((sql) => ({ sql, canWait: false })), ...later.map((sql) => ({ sql, canWait: true }))]
}

/** Computes the hash that Postgres' `md5` returns. A tenant can give a function any text, and this one's length has no limit. */
function hashOf(text: string): string {
  return createHash('md5').update(text).digest('hex')
}

/** Returns the name of a table's function. The dot distinguishes it from names of collections. */
function routineName(table: string): string {
  return nameOf(table, 'functions', '.')
}

const transition: Record<Operation, string> = {
  Insert: 'new table as new_rows',
  Update: 'old table as old_rows new table as new_rows',
  Delete: 'old table as old_rows',
}

function triggerSql(table: string, operation: Operation): string {
  return (
    `create trigger ${triggerNames[operation]} after ${operation.toLowerCase()} on ${identifier(table)}` +
    ` referencing ${transition[operation]}` +
    ` for each statement execute function ${identifier(routineName(table))}()`
  )
}

/** Returns SQL that creates a function. It sets UTC, so that deliveries do not depend on the time zone of the writer's session. */
function routineSql(name: string, body: string): string {
  return `create or replace function ${identifier(name)}() returns trigger language plpgsql set timezone = 'UTC' as ${textLiteral(body)}`
}

/** Returns the body of a table's function. It uses columns only as JSON members, so that no change of the table makes it fail. */
function bodyOf(key: readonly string[], listeners: readonly Listener[]): string {
  const branch = (operation: Operation, source: string, record: string, old: string) => {
    const functionIds = listeners
      .filter((listener) => listener.operation === operation)
      .map(({ functionId }) => functionId)
      .sort()
    if (functionIds.length === 0) return []
    return [`if tg_op = '${operation.toUpperCase()}' then ${deliver(functionIds, key, source, record, old)} end if;`]
  }
  const none = 'null::jsonb'
  const branches = [
    ...branch('Insert', records('new_rows', 'n'), 'n.record', none),
    // Postgres fills both tables record by record, so the same position is the same record, even if its key has changed.
    ...branch(
      'Update',
      `${records('old_rows', 'o')} join ${records('new_rows', 'n')} using (place)`,
      'n.record',
      'o.record',
    ),
    ...branch('Delete', records('old_rows', 'o'), none, 'o.record'),
  ]
  return `${mark} begin ${branches.join(' ')} return null; end`
}

/** Returns a subquery with records as JSON. `offset 0` prevents the planner from computing the JSON for each use. */
function records(rows: string, alias: string): string {
  return `(select row_number() over () as place, to_jsonb(r) - 'tenant_id' as record from ${rows} r offset 0) ${alias}`
}

function deliver(
  functionIds: readonly string[],
  key: readonly string[],
  source: string,
  record: string,
  old: string,
): string {
  const shown = (value: string) =>
    `case when fits or ${value} is null then ${value} else` +
    ` (select jsonb_object_agg(k, ${value} -> k) from unnest(array[${key.map(textLiteral).join(', ')}]::text[]) k) end`
  return (
    `insert into function_deliveries (function_id, payload)` +
    ` select listener, jsonb_build_object('type', tg_op, 'table', tg_table_name, 'schema', tg_table_schema,` +
    ` 'record', ${shown('record')}, 'old_record', ${shown('old_record')}, 'timestamp', ${eventTime})` +
    ` || case when fits then '{}'::jsonb else '{"too_large": true}' end` +
    ` from (select place, ${record} as record, ${old} as old_record,` +
    ` coalesce(pg_column_size(${record}), 0) + coalesce(pg_column_size(${old}), 0) <= ${maxRecordBytes} as fits` +
    ` from ${source} offset 0) changes` +
    ` cross join unnest(array[${functionIds.map(textLiteral).join(', ')}]::uuid[]) listener order by place;`
  )
}
