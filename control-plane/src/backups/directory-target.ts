// Stores backups in a directory. Files are written aside, synced, and renamed into place, and then the directory is
// synced.
//
//   <directory>/<installation>/<backup>.making/<part>       being written
//   <directory>/<installation>/<backup>/<part>              committed
//   <directory>/<installation>/<backup>.removing/<part>     being removed
//   <directory>/<installation>/quarantine/<backup>/<part>   unknown to the control database; `.making` when not whole
import { constants } from 'node:fs'
import { access, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { ConfigurationError, syncDirectory } from '@tenantry/contract'
import { BackupError, fullTarget, missingPart, unavailableTarget } from './backup-error.ts'
import type { BackupTarget, TargetEntry } from './backup-target.ts'
import { releaseMemory } from './release-memory.ts'

const making = '.making'
const removing = '.removing'
const entryName = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(\.making|\.removing)?$/
const readBytes = 1024 * 1024
/** The size of a write, after which the file is synced. A sync of another file on the same disk may have to wait for it. */
const writeBytes = 1024 * 1024
/** The name of the target in the directory TENANTRY_BACKUPS. */
export const defaultName = 'directory'

/**
 * Creates a backup target in a directory, which must exist: a file system that is not mounted makes the target unavailable.
 * @param folder the folder in it, which separates the installations that share the directory
 */
export function createDirectoryTarget(directory: string, folder: string, name: string = defaultName): BackupTarget {
  const root = join(directory, folder)
  const quarantine = join(root, 'quarantine')
  const aside = (backupId: string) => join(root, `${backupId}${making}`)
  const onDisk = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (cause) {
      throw errorOf(name, cause)
    }
  }
  async function* readFirst(paths: readonly string[], part: string, signal: AbortSignal) {
    const handle = await onDisk(() => openFirst(paths))
    if (handle === undefined) throw missingPart(part)
    try {
      yield* handle.createReadStream({ highWaterMark: readBytes, signal }) as AsyncIterable<Buffer>
    } catch (cause) {
      signal.throwIfAborted()
      throw errorOf(name, cause)
    }
  }

  return {
    name,

    async write(backupId, part, content, signal) {
      const handle = await onDisk(async () => {
        if (await makeDirectory(root)) await syncDirectory(directory)
        await makeDirectory(aside(backupId))
        return open(join(aside(backupId), part), 'wx', 0o600)
      })
      let bytes = 0
      let syncing = Promise.resolve()
      try {
        for await (const block of blocksOf(content)) {
          signal.throwIfAborted()
          await onDisk(() => handle.writeFile(block))
          bytes += block.length
          // The last block is synced with the whole file.
          if (block.length < writeBytes) continue
          // The disk writes while the next blocks are made. Each sync is awaited, because it reports an error only once.
          await syncing
          syncing = onDisk(() => handle.datasync())
          syncing.catch(() => undefined)
        }
        await syncing
        await onDisk(() => handle.sync())
      } finally {
        await syncing.catch(() => undefined)
        await handle.close()
      }
      return bytes
    },

    commit: (backupId) =>
      onDisk(async () => {
        await syncDirectory(aside(backupId))
        await rename(aside(backupId), join(root, backupId))
        await syncDirectory(root)
      }),

    read: (backupId, part, signal) =>
      readFirst([join(root, backupId, part), join(quarantine, backupId, part)], part, signal),

    readUncommitted: (backupId, part, signal) => readFirst([join(aside(backupId), part)], part, signal),

    size: (backupId, parts) =>
      onDisk(async () => {
        try {
          const sizes = await Promise.all(parts.map(async (part) => (await stat(join(root, backupId, part))).size))
          return sizes.reduce((sum, size) => sum + size, 0)
        } catch (cause) {
          unlessMissing(cause)
          return undefined
        }
      }),

    discard: (backupId) =>
      onDisk(async () => {
        await rm(aside(backupId), { recursive: true, force: true })
        await syncDirectory(root).catch(unlessMissing)
      }),

    remove: (backupId) =>
      onDisk(async () => {
        const doomed = join(root, `${backupId}${removing}`)
        const isQuarantined = join(quarantine, backupId)
        // The quarantine comes last, so that a backup that is moved there at the same time is found too.
        for (const path of [aside(backupId), join(root, backupId), `${isQuarantined}${making}`, isQuarantined]) {
          await rm(doomed, { recursive: true, force: true })
          // The name records that the removal was decided, whatever remains after an interruption.
          if (await move(path, doomed)) await syncDirectory(root)
        }
        await rm(doomed, { recursive: true, force: true })
        for (const path of [root, quarantine]) await syncDirectory(path).catch(unlessMissing)
      }),

    quarantine: (backupId) =>
      onDisk(async () => {
        await makeDirectory(quarantine)
        await syncDirectory(root)
        for (const entry of [backupId, `${backupId}${making}`]) await move(join(root, entry), join(quarantine, entry))
        await syncDirectory(quarantine)
        await syncDirectory(root)
      }),

    release: (backupId) =>
      onDisk(async () => {
        if (!(await move(join(quarantine, backupId), join(root, backupId)))) return false
        await syncDirectory(root)
        await syncDirectory(quarantine)
        return true
      }),

    list: (backupId) =>
      onDisk(async () => {
        // An empty mount point must not look like a target without backups.
        await access(directory)
        const [stored, quarantined] = await Promise.all([namesIn(root), namesIn(quarantine)])
        const entries = [...entriesOf(stored, false), ...entriesOf(quarantined, true)]
        return backupId === undefined ? entries : entries.filter(({ id }) => id === backupId)
      }),
  }
}

/**
 * Checks at the start that the backup directory is writable, and creates it if it is missing.
 * @throws ConfigurationError
 */
export async function checkDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await access(directory, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : 'unknown error'
    throw new ConfigurationError(
      `TENANTRY_BACKUPS is ${JSON.stringify(directory)}, which this process cannot write: ${reason}`,
      { cause },
    )
  }
}

/**
 * Gathers chunks in blocks, so that the disk gets few and large writes. The memory of a block is used again, and that of chunks
 * is freed.
 */
async function* blocksOf(content: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer, undefined> {
  const block = Buffer.allocUnsafeSlow(writeBytes)
  let used = 0
  for await (const chunk of content) {
    for (let at = 0; at < chunk.length;) {
      const taken = chunk.subarray(at, at + block.length - used)
      block.set(taken, used)
      at += taken.length
      used += taken.length
      if (used < block.length) break
      yield block
      used = 0
    }
    releaseMemory(chunk)
  }
  if (used > 0) yield block.subarray(0, used)
}

function entriesOf(names: readonly string[], isQuarantined: boolean): TargetEntry[] {
  return names.flatMap((name): TargetEntry[] => {
    const [, id, suffix] = entryName.exec(name) ?? []
    if (id === undefined) return []
    return [{ id, content: suffix === making ? 'making' : suffix === removing ? 'removing' : 'whole', isQuarantined }]
  })
}

async function namesIn(path: string): Promise<string[]> {
  return readdir(path).catch((cause: unknown) => {
    unlessMissing(cause)
    return []
  })
}

/** Creates a directory in an existing one, unless it exists. @returns whether it was created */
async function makeDirectory(path: string): Promise<boolean> {
  try {
    await mkdir(path, { mode: 0o700 })
    return true
  } catch (cause) {
    if (codeOf(cause) !== 'EEXIST') throw cause
    return false
  }
}

/**
 * Renames a path.
 * @returns false when there is nothing to move or the new path exists
 */
async function move(from: string, to: string): Promise<boolean> {
  try {
    await rename(from, to)
    return true
  } catch (cause) {
    if (!['ENOENT', 'ENOTEMPTY', 'EEXIST'].includes(String(codeOf(cause)))) throw cause
    return false
  }
}

async function openFirst(paths: readonly string[]) {
  for (const path of paths) {
    try {
      return await open(path, 'r')
    } catch (cause) {
      unlessMissing(cause)
    }
  }
  return undefined
}

function codeOf(cause: unknown): unknown {
  return cause instanceof Error && 'code' in cause ? cause.code : undefined
}

function errorOf(name: string, cause: unknown): BackupError {
  const isFull = ['ENOSPC', 'EDQUOT'].includes(String(codeOf(cause)))
  return isFull ? fullTarget(name, cause) : unavailableTarget(name, cause)
}

function unlessMissing(cause: unknown): void {
  if (codeOf(cause) !== 'ENOENT') throw cause
}
