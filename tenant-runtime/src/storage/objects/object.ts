// A stored object (specification, section 2.2) and its JSON forms. Pure.
import type { Row } from '../../database/statement.ts'
import { eventTime } from '../../events/event-log.ts'

export interface StoredObject {
  id: string
  bucketId: string
  path: string
  blobId: string
  size: number
  contentType: string
  /** The encoding of the stored bytes, for example `gzip`; null without one. */
  contentEncoding: string | null
  etag: string
  cacheControl: string
  metadata: Record<string, unknown>
  ownerId: string | null
  /** Time in ISO 8601, like `updatedAt`. */
  createdAt: string
  updatedAt: string
}

export const objectColumns =
  'o.id as object_id, o.bucket_id, o.path, o.blob_id, o.size, o.content_type, o.content_encoding, o.etag, o.cache_control, o.metadata,' +
  ' o.owner_id as object_owner_id, o.created_at as object_created_at, o.updated_at as object_updated_at'

/** Columns of an object in a list, without the metadata: an object may have 8 KB of it, and no list shows any. */
export const listedColumns = objectColumns.replace('o.metadata', "'{}'::jsonb as metadata")

/** Returns the columns of `objectColumns` as a part of the statement returns them. */
export function objectColumnsOf(part: string): string {
  return objectColumns
    .split(', ')
    .map((column) => `${part}.${column.replace(/^o\.(\w+ as )?/, '')}`)
    .join(', ')
}

/** Returns SQL that writes an event for each of `rows`, which have the path and the owner of `objectColumns`. */
export function objectEvents(
  type: 'storage.object.created' | 'storage.object.deleted',
  rows: string,
  bucketName: string,
): string {
  return `insert into event_log (type, owner_id, payload)
    select '${type}', object_owner_id,
      jsonb_build_object('type', '${type}', 'bucket', ${bucketName}, 'path', path, 'owner_id', object_owner_id,
        'timestamp', ${eventTime}) from ${rows}`
}

export function toObject(row: Row): StoredObject {
  // The table's columns and checks ensure these types.
  return {
    id: String(row['object_id']),
    bucketId: String(row['bucket_id']),
    path: String(row['path']),
    blobId: String(row['blob_id']),
    size: Number(row['size']),
    contentType: String(row['content_type']),
    contentEncoding: row['content_encoding'] as string | null,
    etag: String(row['etag']),
    cacheControl: String(row['cache_control']),
    metadata: row['metadata'] as Record<string, unknown>,
    ownerId: row['object_owner_id'] as string | null,
    createdAt: row['object_created_at'] as string,
    updatedAt: row['object_updated_at'] as string,
  }
}

/** The response to an upload: the specification's record, and the fields that storage clients read. */
export function presentUploaded(object: StoredObject, bucketName: string) {
  return {
    id: object.id,
    bucket: bucketName,
    path: object.path,
    size: object.size,
    content_type: object.contentType,
    owner_id: object.ownerId,
    created_at: object.createdAt,
    Id: object.id,
    Key: `${bucketName}/${object.path}`,
  }
}

export function presentInfo(object: StoredObject, bucketName: string) {
  return {
    id: object.id,
    name: object.path,
    version: object.blobId,
    bucket_id: bucketName,
    size: object.size,
    content_type: object.contentType,
    ...(object.contentEncoding === null ? {} : { content_encoding: object.contentEncoding }),
    cache_control: object.cacheControl,
    etag: `"${object.etag}"`,
    metadata: object.metadata,
    owner_id: object.ownerId,
    last_modified: object.updatedAt,
    created_at: object.createdAt,
  }
}

/** An entry of a listing; `name` is relative to the listed folder. */
export function presentListed(object: StoredObject, name: string) {
  return {
    name,
    id: object.id,
    updated_at: object.updatedAt,
    created_at: object.createdAt,
    last_accessed_at: object.updatedAt,
    metadata: {
      eTag: `"${object.etag}"`,
      size: object.size,
      mimetype: object.contentType,
      cacheControl: object.cacheControl,
      lastModified: object.updatedAt,
      contentLength: object.size,
      httpStatusCode: 200,
    },
  }
}
