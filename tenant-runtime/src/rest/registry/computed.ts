// The functions of a home that compute fields and relationships: those that take a row of a relation, and nothing else. Pure.
import type { Column, ComputedRelationship, Relation } from './catalog.ts'
import type { HomeRelation, HomeRoutine } from './introspect.ts'

/** Columns that every table of Postgres has. A function with such a name cannot be called like a column. */
const systemColumns: ReadonlySet<string> = new Set(['tableoid', 'ctid', 'xmin', 'xmax', 'cmin', 'cmax'])

/** The functions by the relations of whose rows they take one. */
export type ComputingRoutines = ReadonlyMap<string, readonly HomeRoutine[]>

export function computingRoutines(routines: readonly HomeRoutine[]): ComputingRoutines {
  const found = new Map<string, HomeRoutine[]>()
  for (const routine of routines) {
    const [only, ...others] = routine.arguments.filter(({ mode }) => mode !== 'o' && mode !== 't')
    if (only === undefined || others.length > 0 || only.mode === 'v') continue
    const relation = only.relation ?? undefined
    if (relation !== undefined) found.set(relation, [...(found.get(relation) ?? []), routine])
  }
  return found
}

/** Returns the computed parts of a relation. A column of the table, also a hidden one, precedes a function of its name. */
export function computedParts(
  { columns }: HomeRelation,
  routines: readonly HomeRoutine[] = [],
): Pick<Relation, 'computed' | 'computedRelationships'> {
  const computed = new Map<string, Column>()
  const computedRelationships = new Map<string, ComputedRelationship>()
  for (const { name, stored: routine = name, returns, reading: isReading } of routines) {
    if (returns.kind === 'row' && returns.relation !== null) {
      computedRelationships.set(name, {
        name,
        to: returns.relation,
        isToMany: returns.single !== true,
        routine,
        isReading,
      })
    } else if (
      returns.kind === 'value' &&
      !returns.set &&
      !systemColumns.has(routine) &&
      !columns.some((column) => column.name === name || column.name === routine)
    ) {
      computed.set(name, {
        name,
        type: returns.type,
        base: returns.base ?? returns.type,
        nullable: true,
        default: undefined,
        writable: false,
        field: undefined,
        computed: { routine, isReading },
      })
    }
  }
  return { computed, computedRelationships }
}
