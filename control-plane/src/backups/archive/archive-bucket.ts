// Stores the files of archives in a bucket of an S3 server, next to the folder of backups, so that no listing of backups has
// to skip thousands of segments.
//
//   <prefix>archives-<installation>/<archive>/base-<base>          a base backup
//   <prefix>archives-<installation>/<archive>/base-<base>.new      its upload has not ended
//   <prefix>archives-<installation>/<archive>/<segment>            a segment of the WAL
import {
  abortUpload,
  deleteObject,
  isFullServer,
  listObjects,
  listUploads,
  putText,
  readObject,
  S3Connection,
  S3Upload,
  type S3Location,
} from '@tenantry/contract/s3'
import { BackupError, fullTarget, unavailableTarget } from '../backup-error.ts'
import { partBytes } from '../s3-target.ts'
import { aside, type ArchiveTarget } from './archive-target.ts'
import { isSegment } from './wal.ts'

/** More than a segment of 16 MiB that could not be compressed, which is therefore stored with one request. */
const segmentPartBytes = 64 * 2 ** 20

/** Creates the store in a bucket. */
export function createArchiveBucket(location: S3Location, installation: string, target: string): ArchiveTarget {
  const connection = new S3Connection(location, { errorOf: (cause) => errorOf(target, cause) })
  const root = `${location.prefix}archives-${installation}/`
  const keyOf = (archiveId: string, name: string) => `${root}${archiveId}/${name}`

  const sizes = async (archiveId: string, prefix = '') => {
    const found = new Map<string, number>()
    const start = keyOf(archiveId, '')
    for await (const { key, size } of listObjects(connection, start + prefix)) found.set(key.slice(start.length), size)
    return found
  }
  const sizeOf = async (archiveId: string, name: string) => (await sizes(archiveId, name)).get(name)

  /** Aborts the uploads of a file that an interruption has left. */
  const abortUploads = async (archiveId: string, name: string) => {
    // Some servers find uploads by their whole key only.
    const key = keyOf(archiveId, name)
    for await (const upload of listUploads(connection, key))
      if (upload.key === key) await abortUpload(connection, upload)
  }

  const remove = async (archiveId: string, name: string) => {
    if (name.endsWith(aside)) await abortUploads(archiveId, name.slice(0, -aside.length))
    await deleteObject(connection, keyOf(archiveId, name))
  }

  return {
    name: target,

    async write(archiveId, name, content, signal) {
      const isLarge = !isSegment(name)
      if (isLarge) {
        // Only one program writes, so an earlier upload of the file will never end.
        if ((await sizeOf(archiveId, name + aside)) !== undefined) await abortUploads(archiveId, name)
        // It leads to an upload that has not ended, which has no object.
        await putText(connection, keyOf(archiveId, name + aside), '')
      }
      const upload = new S3Upload(connection, keyOf(archiveId, name), isLarge ? partBytes : () => segmentPartBytes)
      let bytes = 0
      try {
        for await (const chunk of content) {
          signal.throwIfAborted()
          await upload.write(chunk)
          bytes += chunk.length
        }
        await upload.end()
      } catch (cause) {
        await upload.abort()
        throw cause
      }
      if (isLarge) await deleteObject(connection, keyOf(archiveId, name + aside))
      return bytes
    },

    async *read(archiveId, name, signal) {
      const missing = () => new BackupError('INCOMPLETE', `The file "${name}" of the archive is missing.`)
      const size = await sizeOf(archiveId, name)
      if (size === undefined) throw missing()
      for await (const chunk of readObject(connection, keyOf(archiveId, name), { start: 0, end: size - 1, missing })) {
        signal.throwIfAborted()
        yield chunk
      }
    },

    has: async (archiveId, name) => (await sizeOf(archiveId, name)) !== undefined,

    names: async (archiveId) => [...(await sizes(archiveId)).keys()],

    async remove(archiveId, name) {
      const size = await sizeOf(archiveId, name)
      if (size !== undefined) await remove(archiveId, name)
      return size ?? 0
    },

    async removeAll(archiveId) {
      for (const name of (await sizes(archiveId)).keys()) await remove(archiveId, name)
    },
  }
}

function errorOf(target: string, cause: unknown): BackupError {
  if (cause instanceof BackupError) return cause
  return isFullServer(cause) ? fullTarget(target, cause) : unavailableTarget(target, cause)
}
