// The CPU time of a process and its descendants, from /proc. It includes what the process uses for others in the kernel.
import { readFile, readdir } from 'node:fs/promises'
import { allProcesses } from '#local/process/process-identity.ts'

/** One tick of the times in /proc/<pid>/stat, of which Linux shows 100 per second on all machines. */
const tickMicroseconds = 10_000

/**
 * Returns the microseconds of CPU time that a process and its descendants have used so far. Threads that run count with
 * the kernel's precision, which is nanoseconds; ended child processes with 10 ms; ended threads of a process that still
 * runs do not count.
 */
export async function cpuMicroseconds(root: number): Promise<number> {
  const pids = descendants(root, await allProcesses())
  const times = await Promise.all(pids.map(ownMicroseconds))
  return times.reduce((sum, time) => sum + time, 0)
}

/** Returns the process, if it is in the list, and its descendants. */
export function descendants(root: number, processes: readonly { pid: number; parent: number }[]): number[] {
  const children = Map.groupBy(processes, ({ parent }) => parent)
  const found = processes.filter(({ pid }) => pid === root).map(({ pid }) => pid)
  // The loop also reads what it adds.
  for (const pid of found) found.push(...(children.get(pid) ?? []).map((child) => child.pid))
  return found
}

/** Returns the microseconds of a thread, of which /proc/<pid>/task/<tid>/schedstat has the nanoseconds first. */
export function threadMicroseconds(schedstat: string): number {
  return Number(schedstat.split(' ')[0]) / 1_000
}

/** Returns the microseconds of all ended child processes, and of theirs, from /proc/<pid>/stat. */
export function endedChildrenMicroseconds(stat: string): number {
  // The name, in parentheses, may contain blanks and parentheses. The state follows it, which is field 3.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [user, system] = [fields[16 - 3], fields[17 - 3]]
  return (Number(user ?? 0) + Number(system ?? 0)) * tickMicroseconds
}

async function ownMicroseconds(pid: number): Promise<number> {
  // A process may end meanwhile. Its files are missing then, and its parent has its time.
  const read = (file: string) => readFile(`/proc/${pid}/${file}`, 'utf8').catch(() => '')
  const threads = await readdir(`/proc/${pid}/task`).catch(() => [])
  const running = await Promise.all(threads.map(async (id) => threadMicroseconds(await read(`task/${id}/schedstat`))))
  return running.reduce((sum, time) => sum + time, endedChildrenMicroseconds(await read('stat')))
}
