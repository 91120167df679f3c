// The names of the two ends of a move: a shared database, or the model of services of the tenant's own.
import type { Operation } from '../api/types.ts'

type Move = NonNullable<Operation['move']>

/** Returns the name of what a home leaves. */
export function originOf({ from, from_isolation: isolation }: Move): string {
  return nameOf(from, isolation)
}

/** Returns the name of what a home gets. */
export function destinationOf({ to, to_isolation: isolation }: Move): string {
  return nameOf(to, isolation)
}

function nameOf(database: string, isolation: string | null): string {
  return isolation === null || isolation === 'schema-per-tenant' ? database : isolation
}
