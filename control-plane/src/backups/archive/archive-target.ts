// Stores the files of archives in a directory. A file is written aside, synced and renamed, so that it is whole or
// missing.
//
//   <directory>/<installation>/archives/<archive>/base-<base>         a base backup
//   <directory>/<installation>/archives/<archive>/<segment>           a segment of the WAL
import { mkdir, open, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isMissingFile, syncDirectory } from '@tenantry/contract'
import { BackupError, fullTarget, unavailableTarget } from '../backup-error.ts'
import { defaultName } from '../directory-target.ts'

/** The end of the names of files whose write has not ended. */
export const aside = '.new'

/** A location for the files of archives. */
export interface ArchiveTarget {
  /** The name of the target, unique in the installation. */
  readonly name: string
  /**
   * Writes a file, or replaces it. It is on disk when this returns, and after an error it is missing or as before.
   * @returns the bytes that were written
   * @throws BackupError DISK_FULL, TARGET_UNAVAILABLE
   */
  write(archiveId: string, name: string, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<number>
  /** Reads a file. @throws BackupError INCOMPLETE when there is none */
  read(archiveId: string, name: string, signal: AbortSignal): AsyncIterable<Uint8Array>
  /** Whether the file is stored. @throws BackupError TARGET_UNAVAILABLE */
  has(archiveId: string, name: string): Promise<boolean>
  /**
   * Lists the files of an archive, those of interrupted writes included. Their names end with `.new`.
   * @throws BackupError TARGET_UNAVAILABLE
   */
  names(archiveId: string): Promise<string[]>
  /** Removes a file. A missing one is not an error. @returns its bytes */
  remove(archiveId: string, name: string): Promise<number>
  /** Removes all files of an archive. */
  removeAll(archiveId: string): Promise<void>
}

/**
 * Creates the store in a directory, which must exist: a file system that is not mounted must not look like an empty one.
 * @param installation separates the installations that share the directory
 * @param target the name of the target
 */
export function createArchiveDirectory(directory: string, installation: string, target = defaultName): ArchiveTarget {
  const root = join(directory, installation, 'archives')
  /** Rejects if the directory itself is gone: then it is unknown whether the target has a file. */
  const checkPresent = async () => {
    await stat(directory).catch((cause: unknown) => {
      throw unavailableTarget(target, cause)
    })
  }
  return {
    name: target,

    async write(archiveId, name, content, signal) {
      const path = join(root, archiveId, name)
      try {
        for (const parent of [join(directory, installation), root, join(root, archiveId)])
          if (await makeDirectory(parent)) await syncDirectory(dirname(parent))
        await writeFile(path + aside, content, { signal, mode: 0o600, flush: true })
        const { size } = await stat(path + aside)
        await rename(path + aside, path)
        await syncDirectory(join(root, archiveId))
        return size
      } catch (cause) {
        await rm(path + aside, { force: true }).catch(() => undefined)
        throw publicError(target, cause)
      }
    },

    async *read(archiveId, name, signal) {
      const handle = await open(join(root, archiveId, name), 'r').catch((cause: unknown) => {
        if (!isMissingFile(cause)) throw cause
        throw new BackupError('INCOMPLETE', `The file "${name}" of the archive is missing.`, { cause })
      })
      yield* handle.createReadStream({ signal }) as AsyncIterable<Buffer>
    },

    async has(archiveId, name) {
      await checkPresent()
      return stat(join(root, archiveId, name)).then(
        () => true,
        (cause: unknown) => {
          if (!isMissingFile(cause)) throw cause
          return false
        },
      )
    },

    async names(archiveId) {
      await checkPresent()
      return readdir(join(root, archiveId)).catch((cause: unknown) => {
        if (!isMissingFile(cause)) throw cause
        return []
      })
    },

    async remove(archiveId, name) {
      await checkPresent()
      const path = join(root, archiveId, name)
      const found = await stat(path).catch((cause: unknown) => {
        if (!isMissingFile(cause)) throw cause
        return undefined
      })
      await rm(path, { force: true })
      return found?.size ?? 0
    },

    async removeAll(archiveId) {
      await checkPresent()
      await rm(join(root, archiveId), { recursive: true, force: true })
      await syncDirectory(root).catch((cause: unknown) => {
        if (!isMissingFile(cause)) throw cause
      })
    },
  }
}

/** Creates a directory in an existing one. @returns false when it exists */
async function makeDirectory(path: string): Promise<boolean> {
  return mkdir(path, { mode: 0o700 }).then(
    () => true,
    (cause: unknown) => {
      if (codeOf(cause) !== 'EEXIST') throw cause
      return false
    },
  )
}

/** Returns the error of the directory as one that operators may see, and any other error unchanged. */
function publicError(target: string, cause: unknown): unknown {
  const code = codeOf(cause)
  if (code === 'ENOSPC' || code === 'EDQUOT') return fullTarget(target, cause)
  const unwritable = ['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EROFS', 'EIO']
  return unwritable.includes(code) ? unavailableTarget(target, cause) : cause
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : ''
}
