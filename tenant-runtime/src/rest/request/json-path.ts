// A path of a column, or inside a column with JSON: `data->list->0->>name`. Pure.
import type { Scanner } from './scanner.ts'

export interface JsonStep {
  arrow: '->' | '->>'
  /** A member's name, or an index in a list. */
  key: string | number
}

export interface Path {
  column: string
  steps: JsonStep[]
}

const index = /-?\d+(?=\s*(?:->|[,.:)]|$))/y

export function readPath(scanner: Scanner): Path {
  return { column: scanner.name(), steps: readSteps(scanner) }
}

export function readSteps(scanner: Scanner): JsonStep[] {
  const steps: JsonStep[] = []
  for (;;) {
    const arrow = scanner.skip('->>') ? '->>' : scanner.skip('->') ? '->' : undefined
    if (arrow === undefined) return steps
    if (steps.at(-1)?.arrow === '->>') scanner.fail('"->>" returns text, which has no members')
    const number = scanner.match(index)
    const key = number === undefined ? scanner.key() : Number(number)
    if (typeof key === 'number' && Math.abs(key) > 0x7fff_ffff) scanner.fail('the index is too large')
    steps.push({ arrow, key })
  }
}
