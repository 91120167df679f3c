// Quick reading statements of several callers as one trip: each caller's context is set once, and what one caller asks
// several times is asked once. Pure.
import { isSameCaller, type RlsContext } from '../tenancy/rls-context.ts'
import { toWire, type ScopedStatements, type Statement } from './statement.ts'

export interface Lookup {
  context: RlsContext
  statement: Statement
}

interface Part extends ScopedStatements {
  statements: Statement[]
  /** Where a statement of this text and these values stands. */
  slots: Map<string, number>
}

interface SharedLookups {
  parts: readonly ScopedStatements[]
  /** From the parts' results, all in a row, to those of the lookups. */
  deal: <Result>(results: readonly Result[]) => (Result | undefined)[]
}

export function shareLookups(lookups: readonly Lookup[]): SharedLookups {
  const parts: Part[] = []
  const responses = lookups.map(({ context, statement }) => {
    let part = parts.find((part) => isSameCaller(part.context, context))
    if (part === undefined) {
      part = { context, statements: [], slots: new Map() }
      parts.push(part)
    }
    const question = JSON.stringify([statement.text, statement.values.map(toWire)])
    const slot = part.slots.get(question) ?? part.statements.push(statement) - 1
    part.slots.set(question, slot)
    return { part, place: slot }
  })
  return {
    parts,
    deal(results) {
      const begin = new Map<Part, number>()
      let count = 0
      for (const part of parts) {
        begin.set(part, count)
        count += part.statements.length
      }
      return responses.map(({ part, place: slot }) => results[(begin.get(part) ?? 0) + slot])
    },
  }
}
