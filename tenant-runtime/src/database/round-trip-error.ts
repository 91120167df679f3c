// What went wrong on a trip to Postgres.
import pg from 'pg'

/** What is certain after a failure: the connection is clean; nothing of the transaction has happened, and nothing will. */
interface Certain {
  reusable: boolean
  undone: boolean
}

/** Thrown for whatever Postgres or the connection said. */
export class RoundTripError extends Error {
  readonly reusable: boolean
  readonly undone: boolean
  readonly sqlstate: string | undefined
  readonly constraint: string | undefined
  readonly detail: string | undefined
  readonly column: string | undefined
  readonly table: string | undefined

  constructor(cause: unknown, { reusable, undone }: Certain) {
    super(cause instanceof Error ? cause.message : String(cause), { cause })
    this.name = 'TripError'
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

/** A prepared statement whose tables were changed under it: preparing it anew is all it takes. */
export function isStalePlan(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.code === '0A000' && /cached plan/.test(error.message)
}
