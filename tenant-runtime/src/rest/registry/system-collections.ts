// The service's own collections, readable under row-level security (specification, section 1). Only the named columns are
// visible.
import type { Relation } from './catalog.ts'

interface SystemCollection {
  readonly columns: readonly string[]
  readonly writable: Relation['writable']
}

export const systemCollections: ReadonlyMap<string, SystemCollection> = new Map(
  Object.entries({
    schemas: {
      writable: 'schemas',
      columns: ['id', 'name', 'fields', 'rls_policy', 'events', 'created_at', 'updated_at'],
    },
    storage_buckets: {
      writable: 'no',
      columns: ['id', 'name', 'owner_id', 'policy', 'config', 'created_at', 'updated_at'],
    },
    storage_objects: {
      writable: 'no',
      columns: [
        'id',
        'bucket_id',
        'path',
        'size',
        'content_type',
        'owner_id',
        'etag',
        'cache_control',
        'metadata',
        'created_at',
        'updated_at',
      ],
    },
    functions: {
      writable: 'no',
      columns: ['id', 'name', 'description', 'trigger_type', 'wasm_hash', 'enabled', 'created_at', 'updated_at'],
    },
    function_invocations: {
      writable: 'no',
      columns: [
        'id',
        'function_id',
        'trigger',
        'status',
        'duration_ms',
        'cpu_ms',
        'memory_peak',
        'error_message',
        'user_id',
        'timestamp',
      ],
    },
    event_log: { writable: 'no', columns: ['seq', 'type', 'owner_id', 'payload', 'created_at'] },
  } satisfies Record<string, SystemCollection>),
)

/** Names that schemas must not use: tables of the home, and paths of the interface. */
export const reservedCollections: ReadonlySet<string> = new Set([
  ...systemCollections.keys(),
  'rpc',
  'home_migrations',
  'applied_schemas',
  'published_catalog',
  'blob_intents',
  'blob_gc',
  'storage_usage',
  'storage_bucket_counters',
  'function_deliveries',
  'function_dispatcher',
  'function_logs',
  'function_schedule_runs',
  'function_webhook_ids',
  'usage_hours',
  'event_log_gone',
  'home_structure',
])

/** Tables of the service that grow with a tenant's own tables, so they count as documents. */
export const documentTables: ReadonlySet<string> = new Set(['function_deliveries'])

/**
 * Tables of the service that record a tenant's stored data, usage and events. Only the service's own statements change
 * them.
 */
export const counterTables: ReadonlySet<string> = new Set([
  'usage_hours',
  'storage_usage',
  'storage_bucket_counters',
  'storage_objects',
  'blob_intents',
  'blob_gc',
  'function_invocations',
  'home_migrations',
  'home_structure',
  'event_log',
  'event_log_gone',
])

/** Functions of the home that are not served: the service's own statements use them, and the tenant's SQL. */
export const ownRoutines: ReadonlySet<string> = new Set([
  'refuse_change',
  'home_problems',
  'home_structure_of',
  'event_log_changes_of',
  'storage_readers_of',
  'realtime_key_of',
  'realtime_follow',
  'realtime_unfollow',
])
