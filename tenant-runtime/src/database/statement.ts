// A statement and its result: all that the rest of the runtime knows of Postgres' protocol.
import type { RlsContext } from '../tenancy/rls-context.ts'

export type Value = string | number | bigint | boolean | null | Buffer

export interface Statement {
  text: string
  values: readonly Value[]
  /** `once` for texts that will hardly come again: they are not kept as prepared statements. */
  prepare?: 'once'
  /** Runs what others wrote, and what may do anything: nothing of it may stay in the session (`session-sweep.ts`). */
  isForeign?: boolean
}

/** What one caller asks for. */
export interface ScopedStatements {
  context: RlsContext
  statements: readonly Statement[]
}

export type Row = Record<string, unknown>

export interface Result {
  rows: Row[]
  /** Rows returned or touched, from the command tag. */
  count: number
}

/** `sql('select …', a, b)`: a statement that is kept prepared on each connection. */
export function sql(text: string, ...values: Value[]): Statement {
  return { text, values }
}

export function toWire(value: Value): string | Buffer | null {
  if (value === null || typeof value === 'string' || Buffer.isBuffer(value)) return value
  return String(value)
}
