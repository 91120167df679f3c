// Lists a bucket's keys in the order of a date, page by page with a cursor: first the folders, which have no dates, by their
// names, then the objects. There is no index by dates, so a page costs as much as all keys with the prefix.
import { sql, type Statement } from '../../database/statement.ts'
import { RuntimeError } from '../../errors.ts'
import type { RlsContext } from '../../tenancy/rls-context.ts'
import type { Tenant } from '../../tenancy/tenant.ts'
import type { Bucket } from '../buckets/bucket.ts'
import { read } from '../buckets/bucket-store.ts'
import { afterAllPaths } from '../object-path.ts'
import { toKeysPage, type KeysPage, type KeysQuery } from './list-keys.ts'
import { listedColumns } from './object.ts'

export interface DatedKeysQuery extends KeysQuery {
  column: 'created_at' | 'updated_at'
}

/** The position of an entry in the order: its date, which a folder does not have, and its key. */
interface Position {
  date: string | null
  key: string
}

export async function listByDate(
  tenant: Tenant,
  context: RlsContext,
  bucket: Bucket,
  query: DatedKeysQuery,
): Promise<KeysPage> {
  const [result] = await read(tenant, context, [datedKeysStatement(bucket.id, query)])
  return toKeysPage(result?.rows ?? [], query.limit, (last) =>
    writeCursor(query, {
      key: last.key,
      date:
        last.kind === 'folder' ? null : query.column === 'created_at' ? last.object.createdAt : last.object.updatedAt,
    }),
  )
}

/** Returns the statement of a page. */
function datedKeysStatement(bucketId: string, query: DatedKeysQuery): Statement {
  const { prefix, after, column, order, asFolders, limit } = query
  const begin = after === undefined ? undefined : readCursor(query, after)
  const further = order === 'asc' ? '>' : '<'
  const isAfter = {
    folder: begin === undefined ? 'true' : begin.date === null ? `key ${further} $4` : 'false',
    object:
      begin === undefined || begin.date === null ? 'true' : `(o.${column}, o.path) ${further} ($5::timestamptz, $4)`,
  }
  const slash = asFolders ? "strpos(substr(o.path, length($2::text) + 1), '/')" : '0'
  const source = `storage_objects o where o.bucket_id = $1::uuid and o.path >= $2::text and o.path < $3::text`
  const nothing = 'null, '.repeat(listedColumns.split(',').length).slice(0, -2)
  const date = column === 'created_at' ? 'object_created_at' : 'object_updated_at'
  return sql(
    `with position as (select $4::text collate "C" as key, $5::timestamptz as date),
     objects as (
       select o.path as key, false as folder, ${listedColumns} from ${source} and ${slash} = 0 and ${isAfter.object}
       order by o.${column} ${order}, o.path ${order} limit $6::bigint
     ), folders as (
       select distinct left(o.path, length($2::text) + ${slash} - 1) collate "C" as key from ${source} and ${slash} > 0
     )
     select * from objects
     union all select key, true, ${nothing} from folders where ${isAfter.folder}
     order by folder desc, ${date} ${order}, key ${order} limit $6::bigint`,
    bucketId,
    prefix,
    prefix + afterAllPaths,
    begin?.key ?? null,
    begin?.date ?? null,
    limit + 1,
  )
}

function writeCursor({ column, order }: DatedKeysQuery, { date, key }: Position): string {
  return Buffer.from(JSON.stringify([column, order, date, key])).toString('base64url')
}

/** Parses a cursor. @throws RuntimeError BAD_REQUEST */
function readCursor({ column, order, prefix }: DatedKeysQuery, text: string): Position {
  try {
    const [forColumn, forOrder, date, key] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[]
    const isDate = date === null || (typeof date === 'string' && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(date))
    const isKey = typeof key === 'string' && !key.includes('\0') && `${key}/`.startsWith(prefix)
    if (forColumn === column && forOrder === order && isDate && isKey && (date === null || !isNaN(Date.parse(date))))
      return { date, key }
  } catch {
    // The error below has the message.
  }
  throw new RuntimeError('BAD_REQUEST', 'The cursor is not from a listing with this prefix and order.')
}
