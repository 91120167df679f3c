// One installation a data directory: a name in the kernel that dies with its holder, and a file that says who that is.
import { once } from 'node:events'
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import { identityOf, isAlive, type ProcessIdentity } from './process-identity.ts'

export class DataDirectoryInUse extends Error {}

const Holder = Type.Object({ pid: Type.Integer(), startTime: Type.String(), bootId: Type.String() })

/**
 * The kernel's name decides between two that start at the same moment; the file is what a message can name, and also
 * holds where that name isn't seen (another network namespace). A holder that is gone holds nothing.
 * @returns a function that gives the lock back
 * @throws DataDirectoryInUse with the pid of the installation that runs
 */
export async function lockDataDirectory(directory: string): Promise<() => Promise<void>> {
  const file = join(directory, 'lock')
  const self = await identityOf(process.pid)
  if (self === undefined) throw new Error('/proc is needed to lock the data directory')
  const { dev, ino } = await stat(directory)
  const name = await takeName(`\0tenantry-${dev}-${ino}`)
  const holder = await readHolder(file)
  if (name === undefined || (holder !== undefined && (await isAlive(holder)))) {
    name?.close()
    const caller = holder !== undefined && (await isAlive(holder)) ? ` (process ${holder.pid})` : ''
    throw new DataDirectoryInUse(
      `${directory} is in use by an installation that runs${caller}. Stop that one, or choose another directory with --data DIR.`,
    )
  }
  await writeFile(`${file}.next`, JSON.stringify(self), { mode: 0o644 })
  await rename(`${file}.next`, file)
  return async () => {
    await rm(file, { force: true })
    name.close()
  }
}

/** An abstract socket: taken by one process, freed by the kernel when that ends in whatever way. */
async function takeName(name: string): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy())
  server.listen({ path: name })
  try {
    await once(server, 'listening')
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'EADDRINUSE') return undefined
    throw cause
  }
  return server.unref()
}

async function readHolder(file: string): Promise<ProcessIdentity | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(file, 'utf8'))
    return Value.Check(Holder, value) ? value : undefined
  } catch {
    return undefined
  }
}
