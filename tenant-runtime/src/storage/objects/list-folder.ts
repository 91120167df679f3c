// What lies directly in a folder, page by page from an offset. Row-level security decides what is seen. A page costs what
// it shows and what it passes over, by an index alone, whatever lies deeper.
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

/** Its objects, and before them the first segments of what lies deeper. */
export async function listFolder(tenant: Tenant, context: RlsContext, bucket: Bucket, query: FolderQuery): Promise<FolderEntry[]> {
  const [result] = await run(tenant, context, [folderStatement(bucket.id, query)])
  return (result?.rows ?? []).map((row) => {
    const name = String(row['name'])
    return row['folder'] === true ? { kind: 'folder', name } : { kind: 'object', name, object: toObject(row) }
  })
}

/** As `folder` has it in the table (migrations/005_folders.sql). */
const slash = '\u0001'

export function folderStatement(bucketId: string, { folder, search, column, order, limit, offset }: FolderQuery): Statement {
  const key = folder.replaceAll('/', slash)
  // Folders have no dates: by those they stand in the order of their names.
  const down = column === 'name' && order === 'desc'
  const searched = search !== ''
  const found = (name: string) => (searched ? `strpos(lower(${name} collate "default"), lower($5)) > 0` : 'true')
  // The first folder at or behind a bound, and of that the segment below ours.
  const step = (bound: string) =>
    `(select left(o.folder, length($2) + strpos(substr(o.folder, length($2) + 1), chr(1))) as key from storage_objects o
      where o.bucket_id = $1 and o.folder > $2 ${folder === '' ? '' : `and o.folder < left($2, -1) || chr(2)`} and ${bound}
      order by o.folder ${down ? 'desc' : 'asc'} limit 1)`
  const next = step(down ? 'o.folder < e.key' : 'o.folder >= left(e.key, -1) || chr(2)')
  const sorts = { name: `path ${order}`, created_at: `created_at ${order}, path`, updated_at: `updated_at ${order}, path` }
  const name = (path: string) => `substr(${path}, length($2) + 1)`
  const text =
    `with recursive steps as (
       select s.key, 0 as before from ${step('true')} s
       union all
       select s.key, e.before + (${found(name('left(e.key, -1)'))})::int
       from steps e, lateral ${next} s where e.before < $3::int + $4::int
     ), every as (
       select ${name('left(key, -1)')} as name, before from steps where ${found(name('left(key, -1)'))}
     ), folders as (
       select name, before from every where before >= $4 and before < $3::int + $4::int
     ), page as (
       select path, row_number() over () as at from (
         select path from storage_objects where bucket_id = $1 and folder = $2 and ${found(name('path'))}
         order by ${sorts[column]} limit $3 - (select count(*) from folders) offset greatest(0, $4 - (select count(*) from every))
       ) paths
     )
     select name, true as folder, before as at, null::uuid as object_id, null::uuid as bucket_id, null as path, null::uuid as blob_id, null::bigint as size,
       null as content_type, null as etag, null as cache_control, null::jsonb as metadata, null as object_owner_id,
       null::timestamptz as object_created_at, null::timestamptz as object_updated_at
     from folders
     union all
     select ${name('o.path')}, false, page.at, ${objectColumns} from page join storage_objects o on o.bucket_id = $1 and o.path = page.path
     order by folder desc, at`
  return sql(text, bucketId, key, limit, offset, ...(searched ? [search] : []))
}
