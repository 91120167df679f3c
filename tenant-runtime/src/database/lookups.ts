// Combines quick reading statements of several callers into one round trip. Each caller's context is set once, and repeated
// statements of a caller run once. Pure.
import { isSameCaller, type RlsContext } from '../tenancy/rls-context.ts'
import { toWire, type ScopedStatements, type Statement } from './statement.ts'

export interface Lookup {
  context: RlsContext
  statement: Statement
}

interface Part extends ScopedStatements {
  statements: Statement[]
  /** The position of a statement in `statements`, by its text and values. */
  positions: Map<string, number>
}

interface SharedLookups {
  parts: readonly ScopedStatements[]
  /** Distributes the results of all parts, in their order, to the lookups. */
  distribute: <Result>(results: readonly Result[]) => (Result | undefined)[]
}

export function shareLookups(lookups: readonly Lookup[]): SharedLookups {
  const parts: Part[] = []
  const positions = lookups.map(({ context, statement }) => {
    let part = parts.find((part) => isSameCaller(part.context, context))
    if (part === undefined) {
      part = { context, statements: [], positions: new Map() }
      parts.push(part)
    }
    const key = JSON.stringify([statement.text, statement.values.map(toWire)])
    const position = part.positions.get(key) ?? part.statements.push(statement) - 1
    part.positions.set(key, position)
    return { part, position }
  })
  return {
    parts,
    distribute(results) {
      const begin = new Map<Part, number>()
      let count = 0
      for (const part of parts) {
        begin.set(part, count)
        count += part.statements.length
      }
      return positions.map(({ part, position }) => results[(begin.get(part) ?? 0) + position])
    },
  }
}
