// A bucket's keys in order, page by page from a cursor: what is deeper than a folder is walked past, not read, so that a
// page costs what it shows, however much lies below.
import { sql, type Statement } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Bucket } from '../buckets/bucket.ts'
import { run } from '../buckets/bucket-store.ts'
import { objectColumns, toObject, type StoredObject } from './object.ts'

export interface KeysQuery {
  /** Bytes that keys begin with: no folder, unless it ends with a slash. */
  prefix: string
  /** What a page before ended with. */
  after: string | undefined
  order: 'asc' | 'desc'
  /** Keys with a slash behind the prefix are shown as the folder that they are in, once. */
  asFolders: boolean
  limit: number
}

export type Key = { kind: 'folder'; key: string } | { kind: 'object'; key: string; object: StoredObject }

export interface KeysPage {
  keys: Key[]
  /** Undefined at the end. */
  next: string | undefined
}

/**
 * Paths are compared byte by byte. All that is in the folder `f` lies from `f/` to before `f0`, because `0` follows `/`;
 * and nothing lies between a path and the path with the byte 1 behind it, which no path holds.
 */
const bounds = {
  asc: { compare: '>=', behind: "case when e.folder then e.key || '0' else e.key || chr(1) end" },
  desc: { compare: '<', behind: "case when e.folder then e.key || '/' else e.key end" },
} as const

export async function listKeys(tenant: Tenant, context: RlsContext, bucket: Bucket, query: KeysQuery): Promise<KeysPage> {
  const [result] = await run(tenant, context, [keysStatement(bucket.id, query)])
  const rows = result?.rows ?? []
  const keys = rows.slice(0, query.limit).map((row): Key => {
    const key = String(row['key'])
    return row['folder'] === true ? { kind: 'folder', key } : { kind: 'object', key, object: toObject(row) }
  })
  const last = rows.length > query.limit ? keys.at(-1) : undefined
  return { keys, next: last === undefined ? undefined : writeCursor(last) }
}

export function keysStatement(bucketId: string, { prefix, after, order, asFolders, limit }: KeysQuery): Statement {
  const { compare, behind } = bounds[order]
  const cursor = after === undefined ? undefined : readCursor(after, prefix)
  const begin = cursor ?? { key: prefix, folder: false }
  // Behind all that begin with the prefix.
  const end = '$2 || chr(1114111) || chr(1114111)'
  const edge = order === 'asc' ? '$2' : end
  const step = (bound: string) =>
    `(select case when slash > 0 then left(path, length($2) + slash - 1) else path end as key, slash > 0 as folder
      from (select o.path, ${asFolders ? "strpos(substr(o.path, length($2) + 1), '/')" : '0'} as slash from storage_objects o
        where o.bucket_id = $1 and o.path >= $2 and o.path < ${end} and o.path ${compare} ${bound}
        order by o.path ${order} limit 1) first)`
  return sql(
    `with recursive e (key, folder, n) as (
       select s.key, s.folder, 1 from (select $3::text collate "C" as key, $4::boolean as folder) e, lateral ${step(cursor === undefined ? edge : behind)} s
       union all
       select s.key, s.folder, e.n + 1 from e, lateral ${step(behind)} s where e.n < $5
     )
     select e.key, e.folder, e.n, ${objectColumns} from e left join storage_objects o on not e.folder and o.bucket_id = $1 and o.path = e.key order by e.n`,
    bucketId, prefix, begin.key, begin.folder, limit + 1,
  )
}

function writeCursor({ kind, key }: Key): string {
  return Buffer.from(`${kind === 'folder' ? 'f' : 'o'}${key}`).toString('base64url')
}

/** @throws RuntimeError BAD_REQUEST */
function readCursor(text: string, prefix: string): { key: string; folder: boolean } {
  const plain = /^[\w-]+$/.test(text) ? Buffer.from(text, 'base64url').toString() : ''
  const key = plain.slice(1)
  if (!/^[fo]/.test(plain) || key.includes('\0') || !`${key}/`.startsWith(prefix)) throw new RuntimeError('BAD_REQUEST', 'the cursor is none of a listing with this prefix')
  return { key, folder: plain.startsWith('f') }
}
