// Statements that return the plan of another one. Pure.
import type { Row, Statement } from '../../database/statement.ts'
import type { PlanRequest } from '../request/read-plan-request.ts'

/** Returns a statement with the plan of the given one. With `analyze` it also runs it. */
export function planStatement({ text, values, isForeign }: Statement, { isJson, options }: PlanRequest): Statement {
  const explain = `explain (${[`format ${isJson ? 'json' : 'text'}`, ...options].join(', ')}) ${text}`
  return { text: explain, values, prepare: 'once', ...(isForeign === undefined ? {} : { isForeign }) }
}

/** Returns the text of a plan, from the rows of its statement. */
export function planText(rows: readonly Row[]): string {
  const lines = rows.map((row) => Object.values(row)[0])
  return lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n')
}
