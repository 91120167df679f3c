// Stores backups in a bucket of an S3 server. S3 cannot rename, so small objects mark the state of a backup.
//
//   <prefix><installation>/<backup>/<part>
//   <prefix><installation>/<backup>/.making        parts are being written
//   <prefix><installation>/<backup>/.committed     all parts are stored
//   <prefix><installation>/<backup>/.quarantined   unknown to the control database
//   <prefix><installation>/<backup>/.removing      being removed
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
import { BackupError, fullTarget, missingPart, unavailableTarget } from './backup-error.ts'
import { recordPart } from './backup-record.ts'
import type { BackupTarget, TargetEntry } from './backup-target.ts'
import { encryptedParts } from './manifest.ts'

type Mark = '.making' | '.committed' | '.quarantined' | '.removing'

/** The sizes of a backup's objects, by name: parts and marks. */
type Stored = ReadonlyMap<string, number>

const objectName = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\/([a-z.]+)$/
const mebibyte = 2 ** 20
const evenParts = 4_000

interface S3TargetOptions {
  /** The parts without which a backup is not whole. */
  parts?: readonly string[]
  /** Returns the bytes of an uploaded part by its number. */
  sizeOfPart?: (number: number) => number
}

/** Returns the size of an uploaded part. 10,000 parts hold 250 GiB, and three parts at most are in memory. */
export function partBytes(number: number): number {
  return (number <= evenParts ? 16 : 32) * mebibyte
}

/**
 * Creates a backup target in a bucket.
 * @param folder the first name of the keys after the prefix, which separates the installations that share the bucket
 */
export function createS3Target(
  location: S3Location,
  folder: string,
  name: string,
  { parts = encryptedParts, sizeOfPart = partBytes }: S3TargetOptions = {},
): BackupTarget {
  const connection = new S3Connection(location, { errorOf: (cause) => errorOf(name, cause) })
  const root = `${location.prefix}${folder}/`
  // A removal in progress takes parts away, so all of them must be there.
  const isWhole = (objects: Stored) => objects.has('.committed') && parts.every((part) => objects.has(part))
  const keyOf = (backupId: string, object: string) => `${root}${backupId}/${object}`
  const mark = (backupId: string, state: Mark) => putText(connection, keyOf(backupId, state), state)
  const remove = (backupId: string, object: string) => deleteObject(connection, keyOf(backupId, object))
  const all = async (prefix: string) => {
    const found = new Map<string, Map<string, number>>()
    for await (const { key, size } of listObjects(connection, prefix)) {
      const [, id, object] = objectName.exec(key.slice(root.length)) ?? []
      if (id === undefined || object === undefined) continue
      const objects = found.get(id) ?? new Map<string, number>()
      found.set(id, objects.set(object, size))
    }
    return found
  }
  const stored = async (backupId: string): Promise<Stored> =>
    (await all(keyOf(backupId, ''))).get(backupId) ?? new Map<string, number>()
  const abortUploads = async (backupId: string) => {
    // Some servers find uploads by their whole key only.
    for (const key of [...parts, recordPart].map((part) => keyOf(backupId, part)))
      for await (const upload of listUploads(connection, key))
        if (upload.key === key) await abortUpload(connection, upload)
  }
  const readPart = (backupId: string, part: string, size: number | undefined, signal: AbortSignal) => {
    if (size === undefined) throw missingPart(part)
    const range = { start: 0, end: size - 1, missing: () => missingPart(part) }
    return untilAborted(readObject(connection, keyOf(backupId, part), range), signal)
  }
  const discard = async (backupId: string) => {
    const objects = await stored(backupId)
    await abortUploads(backupId)
    if (objects.has('.quarantined') || objects.has('.removing')) return
    // Without its mark, a backup that misses parts cannot become whole by a late write.
    const discarded = isWhole(objects) ? [] : [...objects.keys()].filter((object) => object !== '.making')
    for (const object of marksFirst(discarded)) await remove(backupId, object)
    if (objects.has('.making')) await remove(backupId, '.making')
  }

  return {
    name,

    async write(backupId, part, content, signal) {
      if (isWhole(await stored(backupId)))
        throw new BackupError('FAILED', `The backup target "${name}" has this backup already.`)
      // It leads to an upload that has not ended, which has no object.
      await mark(backupId, '.making')
      const upload = new S3Upload(connection, keyOf(backupId, part), sizeOfPart)
      let bytes = 0
      try {
        for await (const chunk of content) {
          signal.throwIfAborted()
          await upload.write(chunk)
          bytes += chunk.length
        }
        await upload.end()
      } catch (error) {
        await upload.abort()
        throw error
      }
      return bytes
    },

    async commit(backupId) {
      const objects = await stored(backupId)
      const missing = parts.find((part) => !objects.has(part))
      if (missing !== undefined) throw missingPart(missing)
      await mark(backupId, '.committed')
      await remove(backupId, '.making')
    },

    async *read(backupId, part, signal) {
      const objects = await stored(backupId)
      yield* readPart(backupId, part, isWhole(objects) ? objects.get(part) : undefined, signal)
    },

    async *readUncommitted(backupId, part, signal) {
      yield* readPart(backupId, part, (await stored(backupId)).get(part), signal)
    },

    async size(backupId, names) {
      const objects = await stored(backupId)
      if (!isWhole(objects) || objects.has('.quarantined') || objects.has('.removing')) return undefined
      let bytes = 0
      for (const part of names) {
        const size = objects.get(part)
        if (size === undefined) return undefined
        bytes += size
      }
      return bytes
    },

    discard,

    async remove(backupId) {
      const objects = await stored(backupId)
      // The mark records that the removal was decided, whatever remains after an interruption.
      if (objects.size > 0) await mark(backupId, '.removing')
      await abortUploads(backupId)
      for (const object of marksFirst([...objects.keys()])) if (object !== '.removing') await remove(backupId, object)
      if (objects.size > 0) await remove(backupId, '.removing')
    },

    async quarantine(backupId) {
      const objects = await stored(backupId)
      const isEmpty = [...objects.keys()].every((object) => object.startsWith('.'))
      if (isEmpty) return discard(backupId)
      await mark(backupId, '.quarantined')
      if (!isWhole(objects)) await abortUploads(backupId)
    },

    async release(backupId) {
      const objects = await stored(backupId)
      if (!objects.has('.quarantined') || !isWhole(objects)) return false
      await remove(backupId, '.quarantined')
      return true
    },

    async list(backupId) {
      const found = await all(backupId === undefined ? root : keyOf(backupId, ''))
      return [...found].flatMap(([id, objects]) => entriesOf(id, objects, isWhole(objects)))
    },
  }
}

/**
 * Lists the folders of the bucket whose names begin with the prefix.
 * @throws BackupError TARGET_UNAVAILABLE
 */
export async function foldersOfBucket(location: S3Location, prefix: string, name: string): Promise<string[]> {
  const connection = new S3Connection(location, { errorOf: (cause) => errorOf(name, cause) })
  const folders = new Set<string>()
  for await (const { key } of listObjects(connection, `${location.prefix}${prefix}`))
    folders.add(key.slice(location.prefix.length).split('/')[0] ?? '')
  return [...folders]
}

function entriesOf(id: string, objects: Stored, whole: boolean): TargetEntry[] {
  if (objects.has('.removing')) return [{ id, content: 'removing', isQuarantined: false }]
  const isQuarantined = objects.has('.quarantined')
  return [
    ...(whole ? [{ id, content: 'whole' as const, isQuarantined }] : []),
    ...(!whole || objects.has('.making') ? [{ id, content: 'making' as const, isQuarantined }] : []),
  ]
}

/** Sorts the names of objects so that the mark of the commit, and the other marks, are before the parts. */
function marksFirst(names: readonly string[]): string[] {
  return names.toSorted((one, other) => Number(other.startsWith('.')) - Number(one.startsWith('.')))
}

async function* untilAborted<T>(source: AsyncIterable<T>, signal: AbortSignal): AsyncGenerator<T, undefined> {
  for await (const item of source) {
    signal.throwIfAborted()
    yield item
  }
}

function errorOf(name: string, cause: unknown): BackupError {
  if (cause instanceof BackupError) return cause
  return isFullServer(cause) ? fullTarget(name, cause) : unavailableTarget(name, cause)
}
