// A process's resident memory: read, and watched while something is done to it.
import { readFile } from 'node:fs/promises'

export async function residentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024
}

/** Bytes before the work, and at most while it was done. */
export async function watchMemory(pid: number, work: () => Promise<void>): Promise<{ before: number; most: number }> {
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
  return { before, most: max }
}
