// Lists, writes and removes small objects, and lists and cancels uploads that have not ended.
import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
} from '@aws-sdk/client-s3'
import type { S3Connection } from './connection.ts'

/** An object, as the server lists it. */
export interface S3Object {
  key: string
  size: number
  /** The time of the server's clock. */
  modified: Date | undefined
}

/** A multipart upload that has not ended. */
export interface S3UnfinishedUpload {
  key: string
  uploadId: string
  /** The time of the server's clock. */
  begun: Date | undefined
}

/** Lists the objects whose keys have the prefix. */
export async function* listObjects(connection: S3Connection, prefix: string): AsyncGenerator<S3Object, undefined> {
  let after: string | undefined
  do {
    const page = {
      Bucket: connection.bucket,
      Prefix: prefix,
      ...(after === undefined ? {} : { ContinuationToken: after }),
    }
    const { Contents = [], NextContinuationToken } = await connection.send((client, options) =>
      client.send(new ListObjectsV2Command(page), options),
    )
    for (const { Key, LastModified, Size = 0 } of Contents)
      if (Key !== undefined) yield { key: Key, size: Size, modified: LastModified }
    after = NextContinuationToken
  } while (after !== undefined)
}

/** Lists the unfinished multipart uploads whose keys have the prefix. */
export async function* listUploads(
  connection: S3Connection,
  prefix: string,
): AsyncGenerator<S3UnfinishedUpload, undefined> {
  let after: { KeyMarker: string; UploadIdMarker: string } | undefined
  do {
    const page = { Bucket: connection.bucket, Prefix: prefix, ...after }
    const {
      Uploads = [],
      IsTruncated,
      NextKeyMarker,
      NextUploadIdMarker,
    } = await connection.send((client, options) => client.send(new ListMultipartUploadsCommand(page), options))
    for (const { Key, UploadId, Initiated } of Uploads) {
      if (Key !== undefined && UploadId !== undefined) yield { key: Key, uploadId: UploadId, begun: Initiated }
    }
    after =
      IsTruncated === true && NextKeyMarker !== undefined
        ? { KeyMarker: NextKeyMarker, UploadIdMarker: NextUploadIdMarker ?? '' }
        : undefined
  } while (after !== undefined)
}

/** Writes an object of a few bytes. */
export async function putText(connection: S3Connection, key: string, text: string): Promise<void> {
  await connection.send((client, options) =>
    client.send(new PutObjectCommand({ Bucket: connection.bucket, Key: key, Body: text }), options),
  )
}

/** Removes an object. A missing one is not an error. */
export async function deleteObject(connection: S3Connection, key: string): Promise<void> {
  await connection.find((client, options) =>
    client.send(new DeleteObjectCommand({ Bucket: connection.bucket, Key: key }), options),
  )
}

/** Cancels a multipart upload. One that has ended is not an error. */
export async function abortUpload(
  connection: S3Connection,
  { key, uploadId }: Pick<S3UnfinishedUpload, 'key' | 'uploadId'>,
): Promise<void> {
  const upload = { Bucket: connection.bucket, Key: key, UploadId: uploadId }
  await connection.find((client, options) => client.send(new AbortMultipartUploadCommand(upload), options))
}
