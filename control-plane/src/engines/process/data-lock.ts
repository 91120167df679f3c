// One installation a data directory: a lock file that names its holder, and is void when the holder is gone.
import { link, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { identityOf, isAlive, type ProcessIdentity } from './process-identity.ts'

export class DataDirectoryInUse extends Error {}

/**
 * @returns a function that gives the lock back
 * @throws DataDirectoryInUse with the pid of the installation that runs
 */
export async function lockDataDirectory(directory: string): Promise<() => Promise<void>> {
  const file = join(directory, 'lock')
  const self = await identityOf(process.pid)
  if (self === undefined) throw new Error('/proc is needed to lock the data directory')
  const mine = `${file}.${process.pid}`
  await writeFile(mine, JSON.stringify(self), { mode: 0o600 })
  try {
    for (let attempt = 0; ; attempt++) {
      try {
        // Atomic: the name appears with its content, or is there already.
        await link(mine, file)
        return () => rm(file, { force: true })
      } catch (cause) {
        if (!(cause instanceof Error && 'code' in cause && cause.code === 'EEXIST')) throw cause
      }
      const holder = await readHolder(file)
      if (attempt > 3 || (holder !== undefined && (await isAlive(holder)))) {
        throw new DataDirectoryInUse(`${directory} is in use by a running installation${holder === undefined ? '' : ` (process ${holder.pid})`}`)
      }
      await rm(file, { force: true })
    }
  } finally {
    await rm(mine, { force: true })
  }
}

async function readHolder(file: string): Promise<ProcessIdentity | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(file, 'utf8'))
    return isIdentity(value) ? value : undefined
  } catch {
    return undefined
  }
}

export function isIdentity(value: unknown): value is ProcessIdentity {
  return (
    typeof value === 'object' && value !== null &&
    'pid' in value && typeof value.pid === 'number' &&
    'startTime' in value && typeof value.startTime === 'string' &&
    'bootId' in value && typeof value.bootId === 'string'
  )
}
