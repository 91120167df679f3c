// The memory and the CPU time of an executor's process, as Linux reports them.
import { readFile } from 'node:fs/promises'

/** Usage of a process so far. */
export interface Usage {
  /** Peak of the memory in bytes. */
  memoryPeak: number
  cpuMicroseconds: number
}

export const noUsage: Usage = { memoryPeak: 0, cpuMicroseconds: 0 }

/** Microseconds of a clock tick of Linux, on every machine on which Node runs. */
const tickMicroseconds = 10_000

/** Reads the usage of a process; none for one that has ended. */
export async function readUsage(pid: number | undefined): Promise<Usage> {
  const read = (name: string) => readFile(`/proc/${pid ?? 0}/${name}`, 'utf8').catch(() => '')
  const [status, stat] = await Promise.all([read('status'), read('stat')])
  // The name of the process may contain any character. Numbers follow it; the 12th and 13th are clock ticks.
  const [user = 0, system = 0] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13)
    .map(Number)
  return {
    memoryPeak: Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1024,
    cpuMicroseconds: (user + system) * tickMicroseconds,
  }
}
