// Backups in a directory: written aside, fsynced, renamed into place, and the place fsynced too.
//
//   <directory>/<installation>/<backup>.making/<part>   being written
//   <directory>/<installation>/<backup>/<part>          whole
import { constants } from 'node:fs'
import { access, mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ConfigurationError } from '@tenantry/contract'
import { BackupError } from './backup-error.ts'
import type { BackupTarget } from './backup-target.ts'

const making = '.making'
const readBytes = 256 * 1024

/** @param installation keeps those of two installations apart that share the directory */
export function createDirectoryTarget(directory: string, installation: string): BackupTarget {
  const root = join(directory, installation)
  const aside = (backupId: string) => join(root, `${backupId}${making}`)

  return {
    async write(backupId, part, content, signal) {
      try {
        await mkdir(aside(backupId), { recursive: true, mode: 0o700 })
        return await writeFile(join(aside(backupId), part), content, signal)
      } catch (cause) {
        throw isFull(cause) ? new BackupError('DISK_FULL', 'the directory of the backups has no room left', { cause }) : cause
      }
    },

    async commit(backupId) {
      await sync(aside(backupId))
      await rename(aside(backupId), join(root, backupId))
      await sync(root)
    },

    async *read(backupId, part, signal) {
      const handle = await open(join(root, backupId, part), 'r').catch((cause: unknown) => {
        throw codeOf(cause) === 'ENOENT' ? new BackupError('INCOMPLETE', `the part "${part}" of the backup is gone`, { cause }) : cause
      })
      yield* handle.createReadStream({ highWaterMark: readBytes, signal }) as AsyncIterable<Buffer>
    },

    async remove(backupId) {
      for (const path of [aside(backupId), join(root, backupId)]) await rm(path, { recursive: true, force: true })
      await sync(root).catch(unlessMissing)
    },

    async list() {
      const names = await readdir(root).catch((cause: unknown) => {
        unlessMissing(cause)
        return []
      })
      return [...new Set(names.map((name) => (name.endsWith(making) ? name.slice(0, -making.length) : name)))]
    },
  }
}

/** @throws Error when backups can't be kept there */
export async function checkDirectory(directory: string): Promise<void> {
  try {
    await mkdir(directory, { recursive: true, mode: 0o700 })
    await access(directory, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : 'unknown error'
    throw new ConfigurationError(`TENANTRY_BACKUPS is ${JSON.stringify(directory)}, which this process cannot write: ${reason}`, { cause })
  }
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

async function sync(directory: string): Promise<void> {
  const handle = await open(directory, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
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
