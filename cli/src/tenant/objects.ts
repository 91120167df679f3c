// Paths and listings of the files in a tenant's buckets.
import { usageError } from '../terminal/exit-codes.ts'
import { asObject, asObjects, textOf } from './json.ts'
import type { TenantClient } from './tenant-client.ts'

const prefix = 'tenant:'
const pageRows = 1000

/** A file or folder in a bucket. The path of the whole bucket is empty. */
export interface ObjectPath {
  readonly bucket: string
  readonly path: string
}

/** A file or a folder of a listing. A folder has no size. */
export interface ListedObject {
  readonly name: string
  readonly bytes: number | null
  readonly updated_at: string | null
}

/** Reads `tenant:BUCKET/PATH`; undefined for a path of this machine. */
export function remotePath(text: string): ObjectPath | undefined {
  return text.startsWith(prefix) ? objectPath(text) : undefined
}

/** Reads `BUCKET/PATH`, with or without `tenant:`. @throws CommandError without a bucket */
export function objectPath(text: string): ObjectPath {
  const name = text.startsWith(prefix) ? text.slice(prefix.length) : text
  const slash = name.indexOf('/')
  const bucket = slash === -1 ? name : name.slice(0, slash)
  if (bucket === '') throw usageError(`Invalid path "${text.slice(0, 100)}". It must be like tenant:BUCKET/PATH.`)
  return { bucket, path: slash === -1 ? '' : name.slice(slash + 1) }
}

/** Returns the objects with a prefix. With `isFolder`, those of deeper folders are one entry for each folder. */
export async function listObjects(
  client: TenantClient,
  bucket: string,
  start: string,
  isFolder: boolean,
): Promise<ListedObject[]> {
  const found: ListedObject[] = []
  let cursor: unknown
  do {
    const page = asObject(
      await client.json(`/storage/v1/object/list-v2/${encodeURIComponent(bucket)}`, {
        method: 'POST',
        json: {
          prefix: start,
          limit: pageRows,
          with_delimiter: isFolder,
          ...(cursor === undefined ? {} : { cursor }),
        },
      }),
      'The listing',
    )
    for (const folder of asObjects(page.folders ?? [], 'The list of folders'))
      found.push({ name: `${textOf(folder.key ?? folder.name).replace(/\/$/, '')}/`, bytes: null, updated_at: null })
    for (const object of asObjects(page.objects, 'The list of objects')) found.push(toListed(object))
    cursor = page.hasNext === true ? page.nextCursor : undefined
  } while (cursor !== undefined)
  return found
}

function toListed(object: Readonly<Record<string, unknown>>): ListedObject {
  const metadata = typeof object.metadata === 'object' && object.metadata !== null ? object.metadata : {}
  const size = 'size' in metadata ? Number(metadata.size) : null
  const updated = object.updated_at
  return {
    name: textOf(object.key ?? object.name),
    bytes: size,
    updated_at: typeof updated === 'string' ? updated : null,
  }
}
