// The service's own collections, readable under row-level security (specification, section 1). What is not named here
// is not shown.
import type { Collection } from './collection.ts'

const columns: Record<string, Record<string, string>> = {
  schemas: { id: 'uuid', name: 'text', fields: 'jsonb', rls_policy: 'jsonb', created_at: 'timestamptz', updated_at: 'timestamptz' },
  storage_buckets: {
    id: 'uuid', name: 'text', owner_id: 'text', policy: 'text', config: 'jsonb',
    created_at: 'timestamptz', updated_at: 'timestamptz',
  },
  storage_objects: {
    id: 'uuid', bucket_id: 'uuid', path: 'text', size: 'bigint', content_type: 'text', owner_id: 'text', etag: 'text',
    cache_control: 'text', metadata: 'jsonb', created_at: 'timestamptz', updated_at: 'timestamptz',
  },
  functions: {
    id: 'uuid', name: 'text', description: 'text', trigger_type: 'text', wasm_hash: 'text', enabled: 'boolean',
    created_at: 'timestamptz', updated_at: 'timestamptz',
  },
  function_invocations: {
    id: 'text', function_id: 'uuid', trigger: 'text', status: 'text', duration_ms: 'integer', memory_peak: 'bigint',
    error_message: 'text', user_id: 'text', timestamp: 'timestamptz',
  },
  event_log: { seq: 'bigint', type: 'text', owner_id: 'text', payload: 'jsonb', created_at: 'timestamptz' },
}

export const systemCollections: ReadonlyMap<string, Collection> = new Map(
  Object.entries(columns).map(([name, types]) => [
    name,
    {
      name,
      columns: new Map(Object.entries(types).map(([column, sqlType]) => [column, { name: column, sqlType, field: undefined }])),
      primary: name === 'event_log' ? 'seq' : 'id',
      ownerField: undefined,
      writable: name === 'schemas' ? 'schemas' : 'no',
    },
  ]),
)

/** Names that no schema may take: tables of the home, and paths of the interface. */
export const reservedCollections: ReadonlySet<string> = new Set([
  ...systemCollections.keys(), 'rpc', 'home_migrations', 'applied_schemas', 'blob_intents', 'blob_gc', 'storage_usage', 'storage_bucket_counters',
])
