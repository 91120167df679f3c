// Reads the changes of records from a home's event log.
import { bytesBefore } from '../../database/bytes-before.ts'
import { sql, type Row } from '../../database/statement.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { ChangeEvent, ChangeType, Readers } from './change-event.ts'
import { parseRecord } from './compare-values.ts'
import { changesContext } from './table-facts.ts'

export interface ChangePage {
  changes: ChangeEvent[]
  /** Whether there are no more changes up to the requested position. */
  isLast: boolean
  /** The number up to which events may have been deleted, also unread ones. */
  deletedUpTo: bigint
}

const maxChanges = 200
/** The maximum bytes of a page's records, except for the last one. */
const pageBytes = 2 * 1024 * 1024

const types: Record<string, ChangeType> = {
  'record.inserted': 'INSERT',
  'record.updated': 'UPDATE',
  'record.deleted': 'DELETE',
}

const pageText = `
  with page as (
    select seq, type, owner_id, readers, counterpart, payload from event_log
    where seq > $1 and seq <= $2 and type in (${Object.keys(types)
      .map((type) => `'${type}'`)
      .join(', ')})
      and ($3::jsonb is null or $3::jsonb ? (payload->>'collection'))
    order by seq limit ${maxChanges})
  select seq::text as seq, type, owner_id, readers, counterpart->>'owner_id' as other_owner, counterpart->>'readers' as other_readers,
    payload->>'collection' as collection, payload->>'bucket' as bucket, payload->>'timestamp' as at,
    (payload->'id')::text as id, coalesce(nullif(payload->'record', 'null'), nullif(payload->'old_record', 'null'))::text as record,
    (select count(*) from page)::int as found
  from (select *, ${bytesBefore('octet_length(payload::text)', 'seq')} as before from page) p
  where before < ${pageBytes} order by p.seq`

/**
 * Reads the next changes after `after`, up to and including `upTo`.
 * @param tables the tables to read; undefined for all
 */
export async function readChanges(
  { database }: Tenant,
  after: bigint,
  upTo: bigint,
  tables: readonly string[] | undefined,
): Promise<ChangePage> {
  const [page, gone] = await database.read(
    changesContext,
    sql(pageText, after, upTo, tables === undefined ? null : JSON.stringify(tables)),
    sql('select up_to::text as up_to from event_log_gone'),
  )
  const rows = page?.rows ?? []
  return {
    changes: rows.map(toChange),
    isLast: rows.length < maxChanges && rows.length === Number(rows[0]?.['found'] ?? 0),
    deletedUpTo: BigInt(String(gone?.rows[0]?.['up_to'])),
  }
}

function toChange(row: Row): ChangeEvent {
  const text = (column: string) => String(row[column])
  return {
    seq: BigInt(text('seq')),
    type: types[text('type')] ?? 'UPDATE',
    schema: 'public',
    table: text('collection'),
    bucket: row['bucket'] === null ? null : text('bucket'),
    ownerId: row['owner_id'] === null ? null : text('owner_id'),
    readers: row['readers'] as Readers,
    counterpart:
      row['other_readers'] === null
        ? undefined
        : {
            ownerId: row['other_owner'] === null ? null : text('other_owner'),
            readers: row['other_readers'] as Readers,
          },
    at: text('at'),
    id: parseRecord(`{"id":${text('id')}}`)['id'],
    record: row['record'] === null ? undefined : parseRecord(text('record')),
  }
}
