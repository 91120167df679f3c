// Checks the functions that a tenant's settings name. Pure.
import { RuntimeError } from '../../errors.ts'
import type { HomeDescription } from './introspect.ts'
import { firstSchema, type RestSettings } from './rest-settings.ts'
import { ownRoutines } from './system-collections.ts'

/**
 * Checks that the functions exist and run with their caller's rights.
 * @throws RuntimeError CONFLICT
 */
export function requireFunctions(
  { db_schemas, db_pre_request, db_root_spec }: RestSettings,
  { routines }: HomeDescription,
): void {
  const candidates = (wanted: string) =>
    routines.filter(
      ({ name, arguments: all, defaults }) =>
        name === wanted &&
        !ownRoutines.has(name) &&
        all.filter(({ mode }) => mode === 'i' || mode === 'b' || mode === 'v').length <= defaults,
    )
  if (db_pre_request !== null) {
    const found = candidates(db_pre_request)
    if (found.length !== 1 || found.some(({ returns }) => returns.set || returns.kind === 'row'))
      throw new RuntimeError(
        'CONFLICT',
        `The setting "db_pre_request" names "${db_pre_request}". The home needs exactly one function of this name that can` +
          ' be called without arguments, returns nothing or one value, and runs with the rights of its caller.',
      )
  }
  const inSchemas = (name: string) =>
    db_schemas.flatMap((schema) => candidates(schema === firstSchema ? name : `${schema}.${name}`))
  if (db_root_spec !== null && inSchemas(db_root_spec).length === 0)
    throw new RuntimeError(
      'CONFLICT',
      `The setting "db_root_spec" names "${db_root_spec}". The home needs a function of this name that can be` +
        ' called without arguments, and runs with the rights of its caller.',
    )
}
