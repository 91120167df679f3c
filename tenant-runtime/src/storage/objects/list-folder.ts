// What lies directly in a folder, page by page from an offset. Row-level security decides what is seen.
import { sql, type Statement } from '../../database/statement.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Bucket } from '../buckets/bucket.ts'
import { run } from '../buckets/bucket-store.ts'
import { objectColumns, toObject, type StoredObject } from './object.ts'

export interface FolderQuery {
  /** With a slash at its end, or empty. */
  folder: string
  search: string
  column: 'name' | 'created_at' | 'updated_at'
  order: 'asc' | 'desc'
  limit: number
  offset: number
}

export type FolderEntry = { kind: 'folder'; name: string } | { kind: 'object'; name: string; object: StoredObject }

/** What lies directly in a folder: its objects, and the first segments of what lies deeper. */
export async function listFolder(tenant: Tenant, context: RlsContext, bucket: Bucket, query: FolderQuery): Promise<FolderEntry[]> {
  const [result] = await run(tenant, context, [folderStatement(bucket.id, query)])
  return (result?.rows ?? []).map((row) => {
    const name = String(row['name'])
    return row['folder'] === true ? { kind: 'folder', name } : { kind: 'object', name, object: toObject(row) }
  })
}

export function folderStatement(bucketId: string, query: FolderQuery): Statement {
  const sorts = { name: 'name', created_at: 'object_created_at', updated_at: 'object_updated_at' } as const
  return sql(
      `with below as (
         select ${objectColumns}, substr(o.path, length($2) + 1) as rest from storage_objects o
         where o.bucket_id = $1 and starts_with(o.path, $2)
       ), entries as (
         select split_part(rest, '/', 1) as name, true as folder, null::uuid as object_id, null::uuid as bucket_id, null as path, null::uuid as blob_id,
           null::bigint as size, null as content_type, null as etag, null as cache_control, null::jsonb as metadata, null as object_owner_id,
           null::timestamptz as object_created_at, null::timestamptz as object_updated_at
         from below where strpos(rest, '/') > 0 group by 1
         union all
         select rest, false, object_id, bucket_id, path, blob_id, size, content_type, etag, cache_control, metadata, object_owner_id, object_created_at, object_updated_at
         from below where strpos(rest, '/') = 0
       )
       select * from entries where $3 = '' or strpos(lower(name collate "default"), lower($3)) > 0
       order by folder desc, ${sorts[query.column]} ${query.order}, name limit $4 offset $5`,
      bucketId, query.folder, query.search, query.limit, query.offset,
  )
}
