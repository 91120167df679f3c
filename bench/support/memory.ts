// Resident memory of a process: reads it, and watches it during some work.
import { readFile } from 'node:fs/promises'

export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024
}

/** Returns the resident bytes before the work and their maximum during it. */
export async function watchMemory(pid: number, work: () => Promise<void>): Promise<{ before: number; max: number }> {
  const before = await residentBytes(pid)
  let max = before
  let done = false
  const watching = (async () => {
    while (!done) {
      max = Math.max(max, await residentBytes(pid))
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })()
  try {
    await work()
  } finally {
    done = true
    await watching
  }
  return { before, max }
}
