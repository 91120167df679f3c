// Statements and their results, independent of Postgres' protocol.
import type { RlsContext } from '../tenancy/rls-context.ts'

export type Value = string | number | bigint | boolean | null | Buffer

export interface Statement {
  text: string
  values: readonly Value[]
  /** `once` for texts that will hardly be repeated, so that no prepared statement is stored. */
  prepare?: 'once'
  /**
   * True for a tenant's own statement, which may do anything. None of its effects may stay in the session
   * (`session-sweep.ts`).
   */
  isForeign?: boolean
}

/** The statements of one caller. */
export interface ScopedStatements {
  context: RlsContext
  statements: readonly Statement[]
}

export type Row = Record<string, unknown>

export interface Result {
  rows: Row[]
  /** The number of rows returned or changed, from the command tag. */
  count: number
}

/** Creates a statement, for example `sql('select …', a, b)`. Each connection stores it as a prepared statement. */
export function sql(text: string, ...values: Value[]): Statement {
  return { text, values }
}

export function toWire(value: Value): string | Buffer | null {
  if (value === null || typeof value === 'string' || Buffer.isBuffer(value)) return value
  return String(value)
}
