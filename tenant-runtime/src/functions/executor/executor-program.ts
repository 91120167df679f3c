// Which file executors run: the one that `scripts/build-executor.mjs` made, while it is what the source would give; else
// the source.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

interface ExecutorProgram {
  file: string
  /** What it must be able to read, as the permission model names it. */
  readable: readonly string[]
}

/** Named by the package, because images hold it elsewhere beside this module than the source does. */
export function executorProgram(child = fileURLToPath(import.meta.resolve('#executor'))): ExecutorProgram {
  const source = dirname(dirname(child))
  const part = dirname(dirname(source))
  const built = join(part, 'built', 'executor.mjs')
  if (child.endsWith('.ts') && isCurrent(part, join(part, 'built', 'executor.json')))
    return { file: built, readable: [built] }
  return { file: child, readable: [join(source, '*'), join(part, 'package.json')] }
}

/** Every file that it was made of is as it was. */
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
