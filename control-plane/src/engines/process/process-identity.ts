// Telling one process from another that later got the same number: the kernel's start time of it.
import { readFile, readdir } from 'node:fs/promises'

export interface ProcessIdentity {
  pid: number
  /** Field 22 of /proc/<pid>/stat: clock ticks since boot. */
  startTime: string
  /** The machine's boot; a start time means nothing across boots. */
  bootId: string
}

/** Undefined when there is no such process, or it is a zombie. */
export async function identityOf(pid: number): Promise<ProcessIdentity | undefined> {
  try {
    const [stat, bootId] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile('/proc/sys/kernel/random/boot_id', 'utf8'),
    ])
    // The command, in parentheses, may hold blanks and parentheses itself.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const startTime = fields[19]
    if (fields[0] === 'Z' || startTime === undefined) return undefined
    return { pid, startTime, bootId: bootId.trim() }
  } catch {
    return undefined
  }
}

export async function isAlive({ pid, startTime, bootId }: ProcessIdentity): Promise<boolean> {
  const now = await identityOf(pid)
  return now !== undefined && now.startTime === startTime && now.bootId === bootId
}

/** Pids of the processes in a process group. */
export async function groupMembers(group: number): Promise<number[]> {
  const members: number[] = []
  for (const entry of await readdir('/proc')) {
    const pid = Number(entry)
    if (!Number.isInteger(pid)) continue
    try {
      const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      if (Number(fields[2]) === group && fields[0] !== 'Z') members.push(pid)
    } catch {
      // It ended while we looked.
    }
  }
  return members
}

/** Signals a whole process group; one that is gone is no error. */
export function signalGroup(group: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-group, signal)
  } catch (cause) {
    if (!(cause instanceof Error && 'code' in cause && cause.code === 'ESRCH')) throw cause
  }
}
