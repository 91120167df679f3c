// Identifies a process by its PID and the kernel's start time, because PIDs are reused.
import { readFile, readdir, readlink, realpath } from 'node:fs/promises'

export interface ProcessIdentity {
  pid: number
  /** Field 22 of /proc/<pid>/stat: clock ticks since boot. */
  startTime: string
  /** ID of the machine's boot. Start times of different boots are not comparable. */
  bootId: string
}

/** The content of /proc/<pid>/stat for a process that is not a zombie. */
interface ProcessStat {
  pid: number
  name: string
  parent: number
  group: number
  startTime: string
}

export async function statOf(pid: number): Promise<ProcessStat | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // The name, in parentheses, may contain blanks and parentheses.
  const end = stat.lastIndexOf(')')
  const fields = stat.slice(end + 2).split(' ')
  const startTime = fields[19]
  if (startTime === undefined || fields[0] === 'Z' || fields[0] === 'X') return undefined
  return {
    pid,
    name: stat.slice(stat.indexOf('(') + 1, end),
    parent: Number(fields[1]),
    group: Number(fields[2]),
    startTime,
  }
}

/** Returns all processes that /proc shows. */
export async function allProcesses(): Promise<ProcessStat[]> {
  const found: ProcessStat[] = []
  for (const entry of await readdir('/proc')) {
    if (!/^\d+$/.test(entry)) continue
    const stat = await statOf(Number(entry))
    if (stat !== undefined) found.push(stat)
  }
  return found
}

/** Returns the processes whose working directory is the given one. */
export async function processesIn(directory: string): Promise<ProcessStat[]> {
  const path = await realpath(directory).catch(() => directory)
  const all = await allProcesses()
  const directories = await Promise.all(all.map(({ pid }) => readlink(`/proc/${pid}/cwd`).catch(() => '')))
  return all.filter((_, index) => directories[index] === path)
}

/** Returns the command line of a process as its arguments; empty if it has ended. */
export async function commandLineOf(pid: number): Promise<string[]> {
  const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')
  return text.split('\0').slice(0, -1)
}

export async function bootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim()
}

export async function identityOf(pid: number): Promise<ProcessIdentity | undefined> {
  const stat = await statOf(pid)
  return stat === undefined ? undefined : { pid, startTime: stat.startTime, bootId: await bootId() }
}

export async function isAlive({ pid, startTime, bootId }: ProcessIdentity): Promise<boolean> {
  const now = await identityOf(pid)
  return now !== undefined && now.startTime === startTime && now.bootId === bootId
}
