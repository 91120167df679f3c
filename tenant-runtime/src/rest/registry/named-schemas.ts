// The schemas of the interface. A home is one schema of Postgres, so the objects of a further schema are those of the home
// whose names begin with that of the schema and a dot: the table "sales.orders" is `orders` in the schema `sales`. Pure.
import type { HomeDescription } from './introspect.ts'
import { firstSchema } from './rest-settings.ts'

/** Returns the schema of an object of the home, and the object's name in that schema. */
function locationOf(stored: string, schemas: readonly string[]): { schema: string; name: string } {
  const [schema = '', ...rest] = stored.split('.')
  const name = rest.join('.')
  return schema !== firstSchema && name !== '' && schemas.includes(schema)
    ? { schema, name }
    : { schema: firstSchema, name: stored }
}

/**
 * Returns the part of a home that belongs to a schema, with the names in that schema. `stored` is the name in the home where
 * it differs.
 * @param schemas all schemas of the interface
 */
export function inSchema(home: HomeDescription, schemas: readonly string[], schema: string): HomeDescription {
  if (schemas.length === 1) return home
  const isInside = (stored: string) => locationOf(stored, schemas).schema === schema
  /** Returns a name for relations of other schemas that none of this schema has. */
  const inside = (stored: string) => {
    const location = locationOf(stored, schemas)
    return location.schema === schema ? location.name : `\0${stored}`
  }
  const insideOrNull = (stored: string | null | undefined) => (typeof stored === 'string' ? inside(stored) : null)
  const named = (stored: string) => ({ name: inside(stored), stored })
  const relations = home.relations.filter(({ name }) => isInside(name))
  // A key between tables of other schemas counts where this schema has views of both.
  const tables = new Set(relations.flatMap(({ name, origins = [] }) => [name, ...origins.map(({ table }) => table)]))
  return {
    ...home,
    relations: relations.map((relation) => ({
      ...relation,
      ...named(relation.name),
      ...(relation.origins === undefined
        ? {}
        : { origins: relation.origins.map((origin) => ({ ...origin, table: inside(origin.table) })) }),
    })),
    references: home.references
      .filter(({ from, to }) => tables.has(from) || tables.has(to))
      .map((reference) => ({ ...reference, from: inside(reference.from), to: inside(reference.to) })),
    routines: home.routines
      .filter(({ name }) => isInside(name))
      .map((routine) => ({
        ...routine,
        ...named(routine.name),
        arguments: routine.arguments.map((one) => ({ ...one, relation: insideOrNull(one.relation) })),
        returns: { ...routine.returns, relation: insideOrNull(routine.returns.relation) },
      })),
    unserved: (home.unserved ?? []).filter(isInside).map(inside),
    handlers: (home.handlers ?? [])
      .filter(({ relation }) => relation === null || isInside(relation))
      .map((handler) => ({ ...handler, relation: insideOrNull(handler.relation) })),
  }
}
