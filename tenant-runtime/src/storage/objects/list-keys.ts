// Lists a bucket's keys in order, page by page with a cursor. It skips the contents of subfolders by an index, so that the
// cost of a page depends only on the entries that it returns.
import { sql, type Row, type Statement } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Bucket } from '../buckets/bucket.ts'
import { read } from '../buckets/bucket-store.ts'
import { afterAllPaths } from '../object-path.ts'
import { listedColumns, objectColumnsOf, toObject, type StoredObject } from './object.ts'

export interface KeysQuery {
  /** The first bytes of the keys; a folder only if it ends with a slash. */
  prefix: string
  /** The cursor that the previous page returned. */
  after: string | undefined
  order: 'asc' | 'desc'
  /** Whether keys with a slash after the prefix are returned as their folder, once. */
  asFolders: boolean
  limit: number
}

export type Key = { kind: 'folder'; key: string } | { kind: 'object'; key: string; object: StoredObject }

export interface KeysPage {
  keys: Key[]
  /** The cursor of the next page; undefined at the end. */
  next: string | undefined
}

/**
 * The comparison that continues a listing, and its bound. Paths are compared byte by byte. All paths in the folder `f` are
 * from `f/` to before `f0`, because `0` follows `/`. No path is between a path and that path with the byte 1 appended,
 * because no path contains that byte.
 */
const bounds = {
  asc: {
    compare: '>=',
    boundAfter: (row: string) => `case when ${row}.folder then ${row}.key || '0' else ${row}.key || chr(1) end`,
  },
  desc: {
    compare: '<',
    boundAfter: (row: string) => `case when ${row}.folder then ${row}.key || '/' else ${row}.key end`,
  },
} as const

/** Number of rows that the first run reads. */
const firstRunRows = 8

export async function listKeys(
  tenant: Tenant,
  context: RlsContext,
  bucket: Bucket,
  query: KeysQuery,
): Promise<KeysPage> {
  const [result] = await read(tenant, context, [keysStatement(bucket.id, query)])
  return toKeysPage(result?.rows ?? [], query.limit, writeCursor)
}

/** Returns the page of a statement's rows, of which one beyond the limit shows that there is a next page. */
export function toKeysPage(rows: readonly Row[], limit: number, cursorAfter: (last: Key) => string): KeysPage {
  const keys = rows.slice(0, limit).map((row): Key => {
    const key = String(row['key'])
    return row['folder'] === true ? { kind: 'folder', key } : { kind: 'object', key, object: toObject(row) }
  })
  const last = rows.length > limit ? keys.at(-1) : undefined
  return { keys, next: last === undefined ? undefined : cursorAfter(last) }
}

/**
 * Returns the statement of a page. It reads runs of rows; each ends at the first row in a subfolder, and the next one
 * begins after that subfolder. A run reads twice as many rows as the previous one, and a single row after a subfolder, so
 * that few more rows are read than returned.
 */
export function keysStatement(bucketId: string, { prefix, after, order, asFolders, limit }: KeysQuery): Statement {
  const { compare, boundAfter } = bounds[order]
  const begin = after === undefined ? undefined : readCursor(after, prefix)
  const end = prefix + afterAllPaths
  const edge = order === 'asc' ? prefix : end
  return sql(
    `with recursive e as (
       select c.key, c.folder, ${begin === undefined ? 'c.key' : boundAfter('c')} as bound, 0::bigint as n,
         ${asFolders ? firstRunRows : '$6'}::bigint as run, true as last, ${listedColumns}
       from (select $4::text collate "C" as key, $5::boolean as folder) c left join storage_objects o on false
       union all
       select r.key, r.folder, ${boundAfter('r')}, e.n + r.n, case when r.folder then 1 else 2 * e.run end,
         r.folder or r.next is null, ${objectColumnsOf('r')}
       from e, lateral (
         select case when slash > 0 then left(path, (select length($2::text)) + slash - 1) else path end as key,
           slash > 0 as folder, row_number() over rows as n, lead(path) over rows as next,
           count(*) filter (where slash > 0) over rows - (slash > 0)::int as folders, ${objectColumnsOf('run')}
         from (
           select ${listedColumns},
             ${asFolders ? "strpos(substr(o.path, (select length($2::text)) + 1), '/')" : '0'} as slash
           from storage_objects o
           where o.bucket_id = (select $1::uuid) and o.path >= (select $2::text) and o.path < (select $3::text)
             and o.path ${compare} e.bound
           order by o.path ${order} limit least(e.run, $6 - e.n)
         ) run window rows as (order by path ${order})
       ) r where e.last and r.folders = 0
     )
     select key, folder, ${objectColumnsOf('e')} from e where n > 0 order by n`,
    bucketId,
    prefix,
    end,
    begin?.key ?? edge,
    begin?.folder ?? false,
    limit + 1,
  )
}

function writeCursor({ kind, key }: Key): string {
  return Buffer.from(`${kind === 'folder' ? 'f' : 'o'}${key}`).toString('base64url')
}

/** Parses a cursor. @throws RuntimeError BAD_REQUEST */
function readCursor(text: string, prefix: string): { key: string; folder: boolean } {
  const plain = /^[\w-]+$/.test(text) ? Buffer.from(text, 'base64url').toString() : ''
  const key = plain.slice(1)
  if (!/^[fo]/.test(plain) || key.includes('\0') || !`${key}/`.startsWith(prefix))
    throw new RuntimeError('BAD_REQUEST', 'The cursor is not from a listing with this prefix.')
  return { key, folder: plain.startsWith('f') }
}
