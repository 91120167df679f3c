// The error of a round trip to Postgres.
import pg from 'pg'

/**
 * The known facts after a failure: whether the connection is clean, and whether the transaction has no effect and never
 * will.
 */
interface Certainty {
  reusable: boolean
  undone: boolean
}

/** The error of a round trip, from Postgres or from the connection. */
export class RoundTripError extends Error {
  readonly reusable: boolean
  readonly undone: boolean
  readonly sqlstate: string | undefined
  readonly constraint: string | undefined
  readonly detail: string | undefined
  readonly column: string | undefined
  readonly table: string | undefined

  constructor(cause: unknown, { reusable, undone }: Certainty) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.name = 'RoundTripError'
    this.reusable = reusable
    this.undone = undone
    const error = cause instanceof pg.DatabaseError ? cause : undefined
    this.sqlstate = error?.code
    this.constraint = error?.constraint
    this.detail = error?.detail
    this.column = error?.column
    this.table = error?.table
  }
}

/** Whether the tables of a prepared statement were changed, so that preparing it again is sufficient. */
export function isStalePlan(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '0A000' && /cached plan/.test(error.message)
}

/** The classes of SQLSTATEs with which Postgres rejects a statement or its values, in whatever state it is itself. */
const statementClasses = ['0A', '21', '22', '23', '2F', '38', '39', '42', '44', '54', 'P0']

/** Whether the statement, its values, or SQL of the tenant that it runs is the reason of an error. */
export function isOfStatement(error: unknown): error is RoundTripError {
  return error instanceof RoundTripError && statementClasses.includes(error.sqlstate?.slice(0, 2) ?? '')
}
