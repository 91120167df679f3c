// Allows one installation per data directory: a kernel name that disappears with its process, and a file that
// identifies the process.
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
 * Locks a data directory. The kernel's name decides between concurrent starts. The file is for messages, and for other
 * network namespaces, where that name is not visible. A process that has ended holds no lock.
 * @returns a function that releases the lock
 * @throws DataDirectoryInUse with the PID of the running installation
 */
export async function lockDataDirectory(directory: string): Promise<() => Promise<void>> {
  const file = join(directory, 'lock')
  const self = await identityOf(process.pid)
  if (self === undefined) throw new Error('The lock of the data directory needs /proc.')
  const { dev, ino } = await stat(directory)
  const name = await takeName(`\0tenantry-${dev}-${ino}`)
  const holder = await readHolder(file)
  if (name === undefined || (holder !== undefined && (await isAlive(holder)))) {
    name?.close()
    const processText = holder !== undefined && (await isAlive(holder)) ? ` (process ${holder.pid})` : ''
    throw new DataDirectoryInUse(
      `${directory} is in use by another installation${processText}. Stop that one, or choose another directory with --data DIR.`,
    )
  }
  await writeFile(`${file}.next`, JSON.stringify(self), { mode: 0o644 })
  await rename(`${file}.next`, file)
  return async () => {
    await rm(file, { force: true })
    name.close()
  }
}

/** Takes an abstract socket, which one process can have, and which the kernel frees whenever that process ends. */
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
