// Distinguishes Postgres's errors by their SQLSTATE.
import pg from 'pg'

/** Whether Postgres has responded with an error of one of the SQLSTATEs. */
export function isState(error: unknown, ...states: string[]): boolean {
  return error instanceof pg.DatabaseError && states.includes(error.code ?? '')
}
