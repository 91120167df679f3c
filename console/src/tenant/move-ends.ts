// The names of the two ends of a move: a shared database, or the model of services of the tenant's own, and the region if it changes.
import type { Operation } from '../api/types.ts'

type Move = NonNullable<Operation['move']>

/** Returns the name of what a home leaves. */
export function originOf({ from, from_isolation: isolation, from_region: region }: Move): string {
  return nameOf(from, isolation, region)
}

/** Returns the name of what a home gets. */
export function destinationOf({ to, to_isolation: isolation, to_region: region }: Move): string {
  return nameOf(to, isolation, region)
}

function nameOf(database: string, isolation: string | null, region: string | null): string {
  const name = isolation === null || isolation === 'schema-per-tenant' ? database : isolation
  return region === null ? name : `${name} in ${region}`
}
