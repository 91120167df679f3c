// A bucket's keys in order, page by page from a cursor: what is deeper than a folder is walked past, not read, so that a
// page costs what it shows, however much lies below.
import { sql, type Statement } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Bucket } from '../buckets/bucket.ts'
import { run } from '../buckets/bucket-store.ts'
import { behindAll } from '../object-path.ts'
import { objectColumns, objectColumnsOf, toObject, type StoredObject } from './object.ts'

interface KeysQuery {
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

interface KeysPage {
  keys: Key[]
  /** Undefined at the end. */
  next: string | undefined
}

/**
 * Paths are compared byte by byte. All that is in the folder `f` lies from `f/` to before `f0`, because `0` follows `/`;
 * and nothing lies between a path and the path with the byte 1 behind it, which no path holds.
 */
const bounds = {
  asc: {
    compare: '>=',
    behind: (row: string) => `case when ${row}.folder then ${row}.key || '0' else ${row}.key || chr(1) end`,
  },
  desc: { compare: '<', behind: (row: string) => `case when ${row}.folder then ${row}.key || '/' else ${row}.key end` },
} as const

/** Rows that are read together before anything is known of what follows. */
const firstRun = 8

export async function listKeys(
  tenant: Tenant,
  context: RlsContext,
  bucket: Bucket,
  query: KeysQuery,
): Promise<KeysPage> {
  const [result] = await run(tenant, context, [keysStatement(bucket.id, query)])
  const rows = result?.rows ?? []
  const keys = rows.slice(0, query.limit).map((row): Key => {
    const key = String(row['key'])
    return row['folder'] === true ? { kind: 'folder', key } : { kind: 'object', key, object: toObject(row) }
  })
  const last = rows.length > query.limit ? keys.at(-1) : undefined
  return { keys, next: last === undefined ? undefined : writeCursor(last) }
}

/**
 * In runs of rows up to the first that stands for a folder, behind which the next run begins. Each run may be twice as
 * long as the one before, and after a folder a single row, so that not many more rows are read than are shown.
 */
export function keysStatement(bucketId: string, { prefix, after, order, asFolders, limit }: KeysQuery): Statement {
  const { compare, behind } = bounds[order]
  const begin = after === undefined ? undefined : readCursor(after, prefix)
  const end = prefix + behindAll
  const edge = order === 'asc' ? prefix : end
  return sql(
    `with recursive e as (
       select c.key, c.folder, ${begin === undefined ? 'c.key' : behind('c')} as bound, 0::bigint as n,
         ${asFolders ? firstRun : '$6'}::bigint as run, true as last, ${objectColumns}
       from (select $4::text collate "C" as key, $5::boolean as folder) c left join storage_objects o on false
       union all
       select r.key, r.folder, ${behind('r')}, e.n + r.n, case when r.folder then 1 else 2 * e.run end,
         r.folder or r.next is null, ${objectColumnsOf('r')}
       from e, lateral (
         select case when slash > 0 then left(path, (select length($2::text)) + slash - 1) else path end as key,
           slash > 0 as folder, row_number() over rows as n, lead(path) over rows as next,
           count(*) filter (where slash > 0) over rows - (slash > 0)::int as folders, ${objectColumnsOf('run')}
         from (
           select ${objectColumns},
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

/** @throws RuntimeError BAD_REQUEST */
function readCursor(text: string, prefix: string): { key: string; folder: boolean } {
  const plain = /^[\w-]+$/.test(text) ? Buffer.from(text, 'base64url').toString() : ''
  const key = plain.slice(1)
  if (!/^[fo]/.test(plain) || key.includes('\0') || !`${key}/`.startsWith(prefix))
    throw new RuntimeError('BAD_REQUEST', 'the cursor is none of a listing with this prefix')
  return { key, folder: plain.startsWith('f') }
}
