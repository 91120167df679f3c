// Changes of files and buckets in the form of the tables `storage.objects` and `storage.buckets`, which clients of Supabase
// follow. Pure.
import type { ChangeEvent } from './change-event.ts'
import type { RecordValue } from './compare-values.ts'
import type { Column, TableFacts } from './table-facts.ts'

type FileRecord = Readonly<Record<string, RecordValue>>

interface StorageTable {
  /** The service's own table. */
  source: string
  facts: TableFacts
  /** Returns the value of the key. */
  idOf: (change: ChangeEvent) => RecordValue
  /** Returns the record of a change as the table shows it. */
  show: (record: FileRecord, change: ChangeEvent) => Record<string, RecordValue>
}

/** Describes a table by its columns: a name, and a type as Postgres names it. */
function factsOf(columns: Record<string, string>): TableFacts {
  const described = Object.entries(columns).map(([name, type]): Column => ({
    name,
    type,
    definition: type === '_text' ? 'text[]' : type,
  }))
  return { columns: described, keys: ['id'] }
}

const objects: StorageTable = {
  source: 'storage_objects',
  facts: factsOf({
    id: 'uuid',
    bucket_id: 'text',
    name: 'text',
    owner: 'text',
    owner_id: 'text',
    created_at: 'timestamptz',
    updated_at: 'timestamptz',
    last_accessed_at: 'timestamptz',
    metadata: 'jsonb',
    path_tokens: '_text',
    user_metadata: 'jsonb',
  }),
  idOf: ({ id }) => id,
  show: (record, { bucket }) => ({
    id: record['id'],
    bucket_id: bucket,
    name: record['path'],
    owner: record['owner_id'],
    owner_id: record['owner_id'],
    created_at: record['created_at'],
    updated_at: record['updated_at'],
    last_accessed_at: record['updated_at'],
    metadata: {
      eTag: `"${String(record['etag'])}"`,
      size: record['size'],
      mimetype: record['content_type'],
      cacheControl: record['cache_control'],
      lastModified: record['updated_at'],
      contentLength: record['size'],
      httpStatusCode: 200,
    },
    path_tokens: String(record['path']).split('/'),
    user_metadata: record['metadata'],
  }),
}

const buckets: StorageTable = {
  source: 'storage_buckets',
  facts: factsOf({
    id: 'text',
    name: 'text',
    owner: 'text',
    owner_id: 'text',
    created_at: 'timestamptz',
    updated_at: 'timestamptz',
    public: 'bool',
    file_size_limit: 'int8',
    allowed_mime_types: '_text',
    type: 'text',
  }),
  idOf: ({ bucket }) => bucket,
  show: (record) => {
    const config = record['config'] as { allowed_mime_types: string[]; max_file_size: number }
    return {
      id: record['name'],
      name: record['name'],
      owner: record['owner_id'],
      owner_id: record['owner_id'],
      created_at: record['created_at'],
      updated_at: record['updated_at'],
      public: record['policy'] === 'public',
      file_size_limit: config.max_file_size === 0 ? null : config.max_file_size,
      allowed_mime_types: config.allowed_mime_types.length === 0 ? null : config.allowed_mime_types,
      type: 'STANDARD',
    }
  },
}

const tables: ReadonlyMap<string, StorageTable> = new Map(Object.entries({ objects, buckets }))

/** The names of the tables of the schema `storage`. */
export const storageTableNames: readonly string[] = [...tables.keys()]

/** The service's own tables of files and buckets. */
export const storageSources: ReadonlySet<string> = new Set([...tables.values()].map(({ source }) => source))

/** Returns the facts about a table of the schema `storage`; undefined when there is none of that name. */
export function storageFacts(table: string): TableFacts | undefined {
  return tables.get(table)?.facts
}

/** Returns the service's own table for a table of the schema `storage`. */
export function storageSourceOf(table: string): string {
  return tables.get(table)?.source ?? table
}

/** Returns a change of a file or a bucket as a change in the schema `storage`; undefined for any other change. */
export function inStorageSchema(change: ChangeEvent): ChangeEvent | undefined {
  for (const [table, { source, idOf, show }] of tables) {
    if (source !== change.table) continue
    const record = change.record === undefined ? undefined : show(change.record, change)
    return { ...change, schema: 'storage', table, id: idOf(change), record }
  }
  return undefined
}
