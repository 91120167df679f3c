// The SQL statement of a folder's page (list-folder.ts). Row-level security decides which objects it reads. Its cost depends
// only on the entries that it returns and those that the offset skips, not on what subfolders have.
import { sql, type Statement, type Value } from '../../database/statement.ts'
import { afterAllPaths } from '../object-path.ts'
import type { KnownPosition } from './folder-positions.ts'
import { listedColumns } from './object.ts'

export interface FolderQuery {
  /** The folder's path with a slash at its end; empty for the bucket's root. */
  folder: string
  search: string
  column: 'name' | 'created_at' | 'updated_at'
  order: 'asc' | 'desc'
  limit: number
  offset: number
}

/** The separator in the table's column `folder` (migrations/005_folders.sql). */
const slash = '\u0001'

/** Number of skipped entries between two positions that a page returns. */
const spacing = 1_000

/** The kinds of rows of the result, in their order. */
export const kinds = { contents: 0, passedFolder: 1, passedObject: 2, folder: 3, object: 4 } as const

/**
 * Returns the statement of a page: folders by their keys, which end with the byte 1, then objects by their paths. It reads
 * one snapshot, in which it also checks that the bucket's contents are those of the known position; if not, it skips all
 * entries from the start. It returns no rows to a caller who may not read the bucket.
 */
export function folderStatement(
  bucketId: string,
  { folder, search, column, order, limit, offset }: FolderQuery,
  known?: KnownPosition,
): Statement {
  const values: Value[] = []
  // The subquery hides the value from the planner: a plan for the value would not be faster, but be made each time.
  const value = (parameter: Value, type: string) => `(select $${values.push(parameter)}::${type})`
  const byName = column === 'name'
  // Folders have no dates, so a listing by date sorts them by name.
  const down = byName && order === 'desc'
  const key = folder.replaceAll('/', slash)
  const afterKey = (folderKey: string) => `${folderKey.slice(0, -1)}\u0002`
  const afterFolder = folder === '' ? afterAllPaths : afterKey(key)
  const [bucket, own, end] = [value(bucketId, 'uuid'), value(key, 'text'), value(afterFolder, 'text')]
  const [limited, skipped] = [value(limit, 'bigint'), value(offset, 'bigint')]
  const searched = search === '' ? undefined : value(search, 'text')
  const found = (path: string) =>
    searched === undefined
      ? 'true'
      : `strpos(lower(substr(${path}, length(${own}) + 1) collate "default"), lower(${searched})) > 0`

  const position = known?.position ?? { passed: 0, key: '', isFolder: true }
  const isKnown = known === undefined ? 'false' : `c.contents = ${value(known.contents, 'uuid')}`
  const [at, passed] = [
    value(position.isFolder && !down && known !== undefined ? afterKey(position.key) : position.key, 'text'),
    value(position.passed, 'bigint'),
  ]

  // Selects the first folder at or after a bound, and cuts its key after the segment below this folder.
  const nextFolder = `(select left(o.folder, length(${own}) + strpos(substr(o.folder, length(${own}) + 1), chr(1))) as key
      from storage_objects o
      where o.bucket_id = ${bucket} and o.folder > ${own} and o.folder < ${end} and o.folder ${down ? '<' : '>='} e.bound
      order by o.folder ${down ? 'desc' : 'asc'} limit 1)`
  const objects = `storage_objects o where o.bucket_id = ${bucket} and o.folder = ${own} and ${found('o.path')}`
  const onward = (from: string) => `${objects} and o.path ${down ? '<' : '>'} ${from} order by o.path ${order}`
  const step = `least(${spacing}, ${skipped} - e.passed)`
  const walked = byName && offset > 0
  const max = `${limited} - (select count(*) from folders)`
  // A search or sort reads the paths only; full rows are read for the entries of the page.
  const from = walked ? 'walk' : 'begin'
  const chosen = byName
    ? `select o.path from ${onward('e.key')} limit ${max}`
    : `select o.path from ${objects} order by o.${column} ${order}, o.path limit ${max} offset greatest(0, ${skipped} - e.passed)`
  const page =
    byName && searched === undefined
      ? `lateral (select ${listedColumns} from ${onward('e.key')} limit ${max}) o`
      : `lateral (${chosen}) chosen, lateral (
          select ${listedColumns} from storage_objects o where o.bucket_id = ${bucket} and o.path = chosen.path limit 1) o`
  const nothing = 'null, '.repeat(listedColumns.split(',').length).slice(0, -2)
  return sql(
    `with recursive start as materialized (
       select c.contents, ${isKnown} as known
       from storage_buckets b join storage_bucket_counters c on c.bucket_id = b.id where b.id = ${bucket}
     ), steps (key, bound, passed) as (
       select null collate "C", (case when known then ${at} else ${down ? end : own} end) collate "C",
         case when known then ${passed} else 0 end
       from start ${position.isFolder ? '' : 'where not known'}
       union all
       select s.key, ${down ? 's.key' : 'left(s.key, -1) || chr(2)'}, e.passed + (${found('left(s.key, -1)')})::int
       from steps e, lateral ${nextFolder} s where e.passed < ${limited} + ${skipped}
     ), every as (
       select key, passed from steps where key is not null and ${found('left(key, -1)')}
     ), folders as (
       select key from every where passed > ${skipped}
     ), begin (key, passed) as (
       ${position.isFolder ? '' : `select ${at} collate "C", ${passed} from start where known union all`}
       select ${value(down ? afterAllPaths : '', 'text')} collate "C", passed
       from (select max(passed) as passed from steps) last where passed < ${limited} + ${skipped}
     )${
       walked
         ? `, walk (key, passed) as (
       select key, passed from begin
       union all
       select s.key, e.passed + ${step}
       from walk e, lateral (select o.path as key from ${onward('e.key')} limit 1 offset ${step} - 1) s
       where e.passed < ${skipped}
     )`
         : ''
     }
     select ${kinds.object} as kind, o.path as key, null::bigint as passed, null::uuid as contents, o.*
     from ${from} e, ${page}${byName ? ` where e.passed >= ${skipped}` : ''}
     union all select ${kinds.folder}, key, null, null, ${nothing} from folders
     union all select ${kinds.passedFolder}, key, passed, null, ${nothing} from every where passed % ${spacing} = 0
     union all select ${kinds.passedObject}, key, passed, null, ${nothing} from ${from}
     union all select ${kinds.contents}, null, null, contents, ${nothing} from start
     order by kind, ${byName ? `key ${order}` : `${column === 'created_at' ? 'object_created_at' : 'object_updated_at'} ${order}, key`}`,
    ...values,
  )
}
