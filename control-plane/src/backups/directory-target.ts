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
import { BackupError } from './backup-error.ts'
import type { BackupTarget, TargetEntry } from './backup-target.ts'

const making = '.making'
const removing = '.removing'
const entryName = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(\.making|\.removing)?$/
const readBytes = 256 * 1024

/**
 * Creates a backup target in a directory.
 * @param installation separates the installations that share the directory
 */
export function createDirectoryTarget(directory: string, installation: string): BackupTarget {
  const root = join(directory, installation)
  const quarantine = join(root, 'quarantine')
  const aside = (backupId: string) => join(root, `${backupId}${making}`)

  return {
    async write(backupId, part, content, signal) {
      try {
        await mkdir(aside(backupId), { recursive: true, mode: 0o700 })
        return await writeFile(join(aside(backupId), part), content, signal)
      } catch (cause) {
        throw isFull(cause) ? new BackupError('DISK_FULL', 'The backup directory has no space left.', { cause }) : cause
      }
    },

    async commit(backupId) {
      await syncDirectory(aside(backupId))
      await rename(aside(backupId), join(root, backupId))
      await syncDirectory(root)
    },

    async *read(backupId, part, signal) {
      const handle = await openFirst([join(root, backupId, part), join(quarantine, backupId, part)])
      if (handle === undefined) throw new BackupError('INCOMPLETE', `The part "${part}" of the backup is missing.`)
      yield* handle.createReadStream({ highWaterMark: readBytes, signal }) as AsyncIterable<Buffer>
    },

    async size(backupId, parts) {
      try {
        const sizes = await Promise.all(parts.map(async (part) => (await stat(join(root, backupId, part))).size))
        return sizes.reduce((sum, size) => sum + size, 0)
      } catch (cause) {
        unlessMissing(cause)
        return undefined
      }
    },

    async discard(backupId) {
      await rm(aside(backupId), { recursive: true, force: true })
      await syncDirectory(root).catch(unlessMissing)
    },

    async remove(backupId) {
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
    },

    async quarantine(backupId) {
      await mkdir(quarantine, { recursive: true, mode: 0o700 })
      await syncDirectory(root)
      for (const name of [backupId, `${backupId}${making}`]) await move(join(root, name), join(quarantine, name))
      await syncDirectory(quarantine)
      await syncDirectory(root)
    },

    async release(backupId) {
      if (!(await move(join(quarantine, backupId), join(root, backupId)))) return false
      await syncDirectory(root)
      await syncDirectory(quarantine)
      return true
    },

    async list() {
      const [stored, quarantined] = await Promise.all([namesIn(root), namesIn(quarantine)])
      return [...entriesOf(stored, false), ...entriesOf(quarantined, true)]
    },
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

async function writeFile(path: string, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<number> {
  const handle = await open(path, 'wx', 0o600)
  let bytes = 0
  try {
    for await (const chunk of content) {
      signal.throwIfAborted()
      await handle.writeFile(chunk)
      bytes += chunk.length
    }
    await handle.sync()
  } finally {
    await handle.close()
  }
  return bytes
}

function codeOf(cause: unknown): unknown {
  return cause instanceof Error && 'code' in cause ? cause.code : undefined
}

function isFull(cause: unknown): boolean {
  return ['ENOSPC', 'EDQUOT'].includes(String(codeOf(cause)))
}

function unlessMissing(cause: unknown): void {
  if (codeOf(cause) !== 'ENOENT') throw cause
}
