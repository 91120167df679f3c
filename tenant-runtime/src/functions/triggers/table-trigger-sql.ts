// Triggers of a table that tell functions of changes: what there is to do, as SQL, from what is there and which functions
// listen. A trigger writes the deliveries in the transaction of whoever writes the records, once for a statement, however
// many records and whoever wrote it. Pure.
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
  /** Those of `triggerNames` that it has. */
  triggers: string[]
}

/** The tables of a home that are not the service's own, and the functions of triggers that are ours. */
export interface TriggerState {
  tables: TriggeredTable[]
  routines: { name: string; body: string }[]
}

interface TriggerStep {
  sql: string
  /** It takes a lock that writers wait for, and could as well be done another time. */
  canWait: boolean
}

/** By operation. */
export const triggerNames = {
  Insert: 'functions_insert',
  Update: 'functions_update',
  Delete: 'functions_delete',
} as const

/** Bytes of a record with the one that it was; of larger ones the key is told, and whoever wants the rest reads it. */
const maxRecordLength = 1024 * 1024

const mark = '/* functions are told of changes */'

/** One column, `state`: a `TriggerState`. For any login of the home. */
export const triggerStateText = `select json_build_object(
  'tables', (select coalesce(json_agg(json_build_object('name', c.relname,
      'key', (select coalesce(json_agg(a.attname order by k.place), '[]')
        from pg_index i, unnest(i.indkey::smallint[]) with ordinality k (number, place), pg_attribute a
        where i.indrelid = c.oid and i.indisprimary and a.attrelid = c.oid and a.attnum = k.number),
      'triggers', (select coalesce(json_agg(t.tgname), '[]') from pg_trigger t
        where t.tgrelid = c.oid and t.tgname in (${Object.values(triggerNames).map(textLiteral).join(', ')})))), '[]')
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = current_schema() and c.relkind in ('r', 'p') and c.relowner <> n.nspowner),
  'routines', (select coalesce(json_agg(json_build_object('name', p.proname, 'body', p.prosrc)), '[]') from pg_proc p
    where p.pronamespace = current_schema()::regnamespace and starts_with(p.prosrc, ${textLiteral(mark)})))::text as state`

/** What is left to do. Steps that can wait come last: without them everything is told that should be, and nothing else. */
export function planTriggers({ tables, routines }: TriggerState, listeners: readonly Listener[]): TriggerStep[] {
  const bodies = new Map(routines.map(({ name, body }) => [name, body]))
  const now: string[] = []
  const later: string[] = []
  for (const { name: table, key, triggers } of tables) {
    const received = listeners.filter((listener) => listener.table === table)
    const routine = routineName(table)
    const body = bodies.get(routine)
    bodies.delete(routine)
    if (received.length === 0 && body === undefined) continue
    const wanted = bodyOf(key, received)
    if (wanted !== body) now.push(routineSql(routine, wanted))
    for (const operation of operations) {
      const name = triggerNames[operation]
      const isRecent = received.some((listener) => listener.operation === operation)
      if (isRecent && !triggers.includes(name)) now.push(triggerSql(table, operation))
      if (!isRecent && triggers.includes(name)) later.push(`drop trigger if exists ${name} on ${identifier(table)}`)
    }
    if (received.length === 0) later.push(`drop function if exists ${identifier(routine)}()`)
  }
  // Of tables that are gone.
  for (const name of bodies.keys()) later.push(`drop function if exists ${identifier(name)}()`)
  return [...now.map((sql) => ({ sql, canWait: false })), ...later.map((sql) => ({ sql, canWait: true }))]
}

/** The dot keeps it apart from whatever a collection can be called. */
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

/** Records as the interface shows them, whatever zone the writer's session has. */
function routineSql(name: string, body: string): string {
  return `create or replace function ${identifier(name)}() returns trigger language plpgsql set timezone = 'UTC' as ${textLiteral(body)}`
}

/** No column is named but as a member of JSON: whatever becomes of the table, its writers are not failed by this. */
function bodyOf(key: readonly string[], listeners: readonly Listener[]): string {
  const branch = (operation: Operation, source: string, record: string, old: string) => {
    const received = listeners
      .filter((listener) => listener.operation === operation)
      .map(({ functionId }) => functionId)
      .sort()
    if (received.length === 0) return []
    return [`if tg_op = '${operation.toUpperCase()}' then ${deliver(received, key, source, record, old)} end if;`]
  }
  const none = 'null::jsonb'
  const branches = [
    ...branch('Insert', records('new_rows', 'n'), 'n.record', none),
    // Both tables are filled record by record, so that the same place is the same record, even when its key has changed.
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

/** `offset 0` keeps the planner from making the same JSON anew wherever it is named. */
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
    ` coalesce(pg_column_size(${record}), 0) + coalesce(pg_column_size(${old}), 0) <= ${maxRecordLength} as fits` +
    ` from ${source} offset 0) changes` +
    ` cross join unnest(array[${functionIds.map(textLiteral).join(', ')}]::uuid[]) listener order by place;`
  )
}
