// Finds the file that executors run: the one that `scripts/build-executor.mjs` built if it is current, else the source.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

interface ExecutorProgram {
  file: string
  /** Paths that the process must be able to read, in the form of Node's permission model. */
  readable: readonly string[]
}

/** Returns the executor's program. The package resolves its path, which in images differs from that in the source. */
export function executorProgram(child = fileURLToPath(import.meta.resolve('#executor'))): ExecutorProgram {
  const source = dirname(dirname(child))
  const part = dirname(dirname(source))
  const built = join(part, 'built', 'executor.mjs')
  if (child.endsWith('.ts') && isCurrent(part, join(part, 'built', 'executor.json')))
    return { file: built, readable: [built] }
  return { file: child, readable: [join(source, '*'), join(part, 'package.json')] }
}

/** Whether all files from which the program was built are unchanged. */
function isCurrent(part: string, record: string): boolean {
  try {
    const inputs: unknown = JSON.parse(readFileSync(record, 'utf8'))
    if (typeof inputs !== 'object' || inputs === null) return false
    return Object.entries(inputs).every(
      ([path, hash]) =>
        createHash('sha256')
          .update(readFileSync(join(part, path)))
          .digest('hex') === hash,
    )
  } catch {
    return false
  }
}
