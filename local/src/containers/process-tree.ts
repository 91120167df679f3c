// The processes of a program: those that it started, and those that a killed one has left.
import { readFile, readlink, realpath } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ContainerStats } from '../../../control-plane/src/engines/index.ts'
import { signalProcess } from '../process/process-group.ts'
import { allProcesses } from '../process/process-identity.ts'
import type { Identity } from '../process/unprivileged.ts'

const killMilliseconds = 5_000
const pageBytes = 4_096
/** A clock tick of /proc is a hundredth of a second on every Linux. */
const nanosecondsPerTick = 10_000_000

/** The properties by which the processes of a program are found. */
interface OwnProcesses {
  /** Directories in which only this program's processes work. */
  ownDirectories: readonly string[]
  identity: Identity | undefined
  /** Whether only this program's processes have the identity. */
  hasOwnUser: boolean
}

/**
 * Kills all processes of a program, such as the backends of a killed Postgres, each of which leads its own process group.
 * @throws Error if a process cannot be killed
 */
export async function killRemaining(own: OwnProcesses): Promise<void> {
  const deadline = performance.now() + killMilliseconds
  for (;;) {
    const found = await processesOf(own)
    if (found.length === 0) return
    if (performance.now() > deadline) throw new Error(`The process ${found[0] ?? ''} could not be killed.`)
    for (const pid of found) signalProcess(pid, 'SIGKILL')
    await sleep(10)
  }
}

async function processesOf({ ownDirectories, identity, hasOwnUser }: OwnProcesses): Promise<number[]> {
  // The kernel reports directories without symbolic links.
  const own = await Promise.all(ownDirectories.map((directory) => realpath(directory).catch(() => directory)))
  const isBelow = (path: string) => own.some((one) => path === one || path.startsWith(`${one}/`))
  const isOwn = async (pid: number) => {
    if (isBelow(await readlink(`/proc/${pid}/cwd`).catch(() => ''))) return true
    if (!hasOwnUser || identity === undefined) return false
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '')
    return status.includes(`\nUid:\t${identity.uid}\t`)
  }
  const all = await allProcesses()
  const found = await Promise.all(all.map(async ({ pid }) => ((await isOwn(pid)) ? [pid] : [])))
  return found.flat()
}

/** Returns what a process and its descendants use. Memory that processes share is not included. */
export async function treeStats(root: number): Promise<ContainerStats> {
  const all = await allProcesses()
  const tree = [root]
  for (const pid of tree) tree.push(...all.filter(({ parent }) => parent === pid).map((child) => child.pid))
  const used = await Promise.all(tree.map(usedBy))
  return {
    cpuNanoseconds: used.reduce((sum, { ticks }) => sum + ticks, 0) * nanosecondsPerTick,
    memoryBytes: used.reduce((sum, { pages }) => sum + pages, 0) * pageBytes,
  }
}

async function usedBy(pid: number): Promise<{ ticks: number; pages: number }> {
  const read = (file: string) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')
  const [stat, memory] = await Promise.all([read('stat'), read('statm')])
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const number = (text: string | undefined) => Number(text ?? 0)
  const [, resident, shared] = memory.split(' ')
  // User and system time, of the process and of its children that have ended.
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + number(field), 0)
  return { ticks, pages: number(resident) - number(shared) }
}
