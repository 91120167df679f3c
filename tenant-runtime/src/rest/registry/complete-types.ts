// Completes the types of a catalog that was published without their modifiers, until the next reload publishes it again.
// Pure.
import type { HomeDescription, HomeType } from './introspect.ts'

/** Reports whether the types of a published home have their modifiers. Homes without columns and arguments need none. */
export function hasModifiers({ relations, routines }: HomeDescription): boolean {
  const types: HomeType[] = [
    ...relations.flatMap(({ columns }) => columns),
    ...routines.flatMap((routine) => routine.arguments),
  ]
  return types.every(({ base }) => base !== undefined)
}

/**
 * Completes the types. A column takes its type from the home as it is `now`, unless that type has changed since the
 * publication.
 */
export function completeTypes(published: HomeDescription, now: HomeDescription): HomeDescription {
  const relations = published.relations.map((relation) => {
    const found = now.relations.find(({ name }) => name === relation.name)
    const typeNow = (column: string) => found?.columns.find(({ name }) => name === column)
    return {
      ...relation,
      columns: relation.columns.map((column) => ({ ...column, ...completed(column, typeNow(column.name)) })),
    }
  })
  const routines = published.routines.map((routine) => ({
    ...routine,
    arguments: routine.arguments.map((argument) => ({ ...argument, ...ofAnyLength(argument) })),
  }))
  return { ...published, relations, routines }
}

function completed(published: HomeType, now: HomeType | undefined): HomeType {
  const isSame = now !== undefined && (now.base === published.type || now.type === published.type)
  return isSame ? { type: now.type, base: now.base ?? now.type } : ofAnyLength(published)
}

/** Returns names for types of any length, because `character` and `bit` without a modifier have length 1 in SQL. */
function ofAnyLength({ type }: HomeType): HomeType {
  return { type: type.replace(/^character(?=$|\[\]$)/, 'bpchar').replace(/^bit(?=$|\[\]$)/, '"bit"'), base: type }
}
