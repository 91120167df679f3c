// Change events of a collection: triggers that write to the event log in the transaction of the change. A trigger runs once
// per statement, so ten thousand records need only one insert into the log. Pure.
import { identifier } from '../sql/names.ts'
import { eventTime } from '../../events/event-log.ts'
import { primaryOf, tableFields, type PolicyType, type SchemaDefinition } from './collection.ts'
import { textLiteral } from './ddl-values.ts'
import { nameOf } from './table-parts.ts'

/** The maximum bytes of both records. For larger ones the event only reports the change, and consumers read the record. */
const maxEventLength = 1024 * 1024

export const eventTriggers = ['events_insert', 'events_update', 'events_delete'] as const

/** The readers of events of other users' records: those who may read the records. */
const readers: Record<PolicyType, string> = {
  ownership: 'owner',
  public_read: 'anyone',
  authenticated: 'signed_in',
  service: 'owner',
}

export function eventFunctionName({ name }: Pick<SchemaDefinition, 'name'>): string {
  return nameOf(name, 'events', '.')
}

/** Returns the function and the triggers that call it. The function's text depends on the schema only. */
export function eventsSql(definition: SchemaDefinition): { function: string; triggers: string[] } {
  const { name, policy } = definition
  const table = identifier(name)
  const call = `for each statement execute function ${identifier(eventFunctionName(definition))}()`
  const columns = tableFields(definition)
    .map((field) => identifier(field.name))
    .join(', ')
  const key = identifier(primaryOf(definition).name)
  const owner = policy.ownerField === undefined ? 'null::text' : `r.${identifier(policy.ownerField)}::text`
  // `offset 0` keeps the planner from computing the same JSON several times.
  const records = (rows: string) =>
    `(select r.${key} as key, ${owner} as owner, to_jsonb(r) as record from (select ${columns} from ${rows}) r offset 0)`
  const log = (
    type: string,
    { key, owner, record, old }: { key: string; owner: string; record: string; old: string },
    source: string,
  ) =>
    `insert into event_log (type, owner_id, readers, payload) select ${type}, ${owner}, ${textLiteral(readers[policy.type])},` +
    ` jsonb_build_object('type', ${type}, 'collection', ${textLiteral(name)}, 'id', ${key}, 'owner_id', ${owner},` +
    ` 'timestamp', ${eventTime}) ||` +
    ` case when coalesce(pg_column_size(${record}), 0) + coalesce(pg_column_size(${old}), 0) <= ${maxEventLength}` +
    ` then jsonb_build_object('record', ${record}, 'old_record', ${old})` +
    ` else '{"record": null, "old_record": null, "too_large": true}' end from ${source}`
  const inserted = log(
    `'record.inserted'::text`,
    { key: 'n.key', owner: 'n.owner', record: 'n.record', old: 'null::jsonb' },
    `${records('new_rows')} n`,
  )
  const deleted = log(
    `'record.deleted'::text`,
    { key: 'o.key', owner: 'o.owner', record: 'null::jsonb', old: 'o.record' },
    `${records('old_rows')} o`,
  )
  // Records are matched by key and owner: the old owner of a record sees a deletion, the new one an insertion.
  const updated = log(
    `case when o.record is null then 'record.inserted' when n.record is null then 'record.deleted' else 'record.updated' end`,
    { key: 'coalesce(n.key, o.key)', owner: 'coalesce(n.owner, o.owner)', record: 'n.record', old: 'o.record' },
    `${records('old_rows')} o full join ${records('new_rows')} n on n.key = o.key and coalesce(n.owner, '') = coalesce(o.owner, '')`,
  )
  const body =
    `begin if tg_op = 'INSERT' then ${inserted}; elsif tg_op = 'UPDATE' then ${updated}; else ${deleted}; end if;` +
    ` return null; end`
  return {
    // Times are in UTC as in the interface, whatever time zone the writer's session has.
    function:
      `create or replace function ${identifier(eventFunctionName(definition))}() returns trigger` +
      ` language plpgsql set timezone = 'UTC' as ${textLiteral(body)}`,
    triggers: [
      `create trigger events_insert after insert on ${table} referencing new table as new_rows ${call}`,
      `create trigger events_update after update on ${table} referencing old table as old_rows new table as new_rows ${call}`,
      `create trigger events_delete after delete on ${table} referencing old table as old_rows ${call}`,
    ],
  }
}
