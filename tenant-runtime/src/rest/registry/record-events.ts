// Change events of a collection: triggers that write into the event log, in the transaction of whoever writes the
// records. Once for a statement, not once for a record: ten thousand records are one insert into the log. Pure.
import { identifier } from '../sql/names.ts'
import { eventTime } from '../../events/event-log.ts'
import { primaryOf, tableFields, type PolicyType, type SchemaDefinition } from './collection.ts'
import { textLiteral } from './ddl-values.ts'
import { nameOf } from './table-parts.ts'

/** Bytes of both records; of larger ones the event tells that they have changed, and whoever wants them reads them. */
const maxEventLength = 1024 * 1024

export const eventTriggers = ['events_insert', 'events_update', 'events_delete'] as const

/** Who may read the events of others' records: whoever may read the records. */
const readers: Record<PolicyType, string> = {
  ownership: 'owner',
  public_read: 'anyone',
  authenticated: 'signed_in',
  service: 'owner',
}

export function eventFunctionName({ name }: Pick<SchemaDefinition, 'name'>): string {
  return nameOf(name, 'events', '.')
}

/** The function, and the triggers that call it. Its text says all that depends on the schema. */
export function eventsSql(definition: SchemaDefinition): { function: string; triggers: string[] } {
  const { name, policy } = definition
  const table = identifier(name)
  const call = `for each statement execute function ${identifier(eventFunctionName(definition))}()`
  const columns = tableFields(definition)
    .map((field) => identifier(field.name))
    .join(', ')
  const key = identifier(primaryOf(definition).name)
  const owner = policy.ownerField === undefined ? 'null::text' : `r.${identifier(policy.ownerField)}::text`
  // `offset 0` keeps the planner from making the same JSON anew wherever it is named.
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
  // Told by key and owner: to the one who loses a record it is deleted, to the one who gets it, it is inserted.
  const updated = log(
    `case when o.record is null then 'record.inserted' when n.record is null then 'record.deleted' else 'record.updated' end`,
    { key: 'coalesce(n.key, o.key)', owner: 'coalesce(n.owner, o.owner)', record: 'n.record', old: 'o.record' },
    `${records('old_rows')} o full join ${records('new_rows')} n on n.key = o.key and coalesce(n.owner, '') = coalesce(o.owner, '')`,
  )
  const body =
    `begin if tg_op = 'INSERT' then ${inserted}; elsif tg_op = 'UPDATE' then ${updated}; else ${deleted}; end if;` +
    ` return null; end`
  return {
    // As the interface shows them, whatever zone the writer's session has.
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
