// Which columns of a view are unchanged columns of a table, by the parsed query that Postgres stores for the view. Pure.
import type { HomeDescription, HomeRelation, Origin } from './introspect.ts'

/** A home as it was read, before its views are completed. */
export type HomeAsRead = Omit<HomeDescription, 'relations'> & { relations: RelationAsRead[] }

type RelationAsRead = Omit<HomeRelation, 'columns' | 'origins'> & {
  oid: number
  /** Whether each row of this view is a row of one other relation. */
  plain: boolean
  /** The parts of a view's query that `targetsOf` needs; null for tables and too large queries. */
  query: string | null
  columns: (HomeRelation['columns'][number] & { number: number })[]
}

/** Returns the home with the origins of its views' columns, and with the keys of views whose rows are those of a table. */
export function completeViews(home: HomeAsRead): HomeDescription {
  const { relations, references } = home
  const byOid = new Map(relations.map((relation) => [relation.oid, relation]))
  const targets = new Map(relations.map((relation) => [relation.oid, targetsOf(relation.query ?? '')]))
  /** Follows views of views to the table. */
  const originOf = (oid: number, number: number, depth = 0): Omit<Origin, 'column'> | undefined => {
    const relation = byOid.get(oid)
    if (relation?.kind === 'table') {
      const column = relation.columns.find((column) => column.number === number)
      return column === undefined ? undefined : { table: relation.name, tableColumn: column.name }
    }
    const target = targets.get(oid)?.get(number)
    return target === undefined || depth > maxDepth ? undefined : originOf(target.oid, target.number, depth + 1)
  }
  const uniqueOf = new Map(relations.map(({ name, unique }) => [name, unique]))
  return {
    ...home,
    relations: relations.map(({ oid, plain, query: _query, columns, ...relation }) => {
      const origins =
        relation.kind === 'table'
          ? []
          : columns.flatMap(({ name, number }): Origin[] => {
              const origin = originOf(oid, number)
              return origin === undefined ? [] : [{ column: name, ...origin }]
            })
      return {
        ...relation,
        columns: columns.map(({ number: _number, ...column }) => column),
        ...(origins.length === 0 ? {} : { origins }),
        ...(plain ? keysOf(origins, relations) : {}),
      }
    }),
    references: references.map((reference) => {
      const columns = reference.pairs.map(([column]) => column)
      const sets = uniqueOf.get(reference.from) ?? []
      return { ...reference, isUnique: sets.some((set) => set.every((column) => columns.includes(column))) }
    }),
  }
}

/** The maximum number of views that are views of each other. */
const maxDepth = 32

/** Returns the keys of a view whose columns have one table as their origin. */
function keysOf(
  origins: readonly Origin[],
  relations: readonly RelationAsRead[],
): { key?: string[]; unique?: string[][] } {
  const [first] = origins
  const table = relations.find(({ name, kind }) => kind === 'table' && name === first?.table)
  if (table === undefined || origins.some((origin) => origin.table !== table.name)) return {}
  const shown = (set: readonly string[]) => {
    const columns = set.flatMap((name) => origins.find(({ tableColumn }) => tableColumn === name)?.column ?? [])
    return columns.length === set.length ? columns : undefined
  }
  return { key: shown(table.key) ?? [], unique: table.unique.map(shown).filter((set) => set !== undefined) }
}

interface Target {
  oid: number
  number: number
}

/**
 * Reads a query's list of columns: those that are unchanged columns of another relation, by their position.
 * @param query a text of brackets and of `:resno 1 :resorigtbl 16384 :resorigcol 2`
 */
export function targetsOf(query: string): Map<number, Target> {
  const targets = new Map<number, Target>()
  const list = topList(query)
  for (const entry of list) {
    const [, number, oid, column] = /:resno (\d+).*:resorigtbl (\d+) .*:resorigcol (\d+)/s.exec(entry) ?? []
    if (number !== undefined && oid !== undefined && oid !== '0')
      targets.set(Number(number), { oid: Number(oid), number: Number(column) })
  }
  return targets
}

/** Returns the texts of the entries of the outermost `:targetList`, without the brackets inside them. */
function topList(query: string): string[] {
  const name = ':targetList '
  const entries: string[] = []
  let [depth, isInList, entry] = [0, false, '']
  for (let at = 0; at < query.length; at++) {
    const character = query.charAt(at)
    if (character === '(' || character === '{') {
      depth++
      if (depth === entryDepth) entry = ''
    } else if (character === ')' || character === '}') {
      if (depth === entryDepth && isInList) entries.push(entry)
      if (depth === entryDepth - 1 && isInList) return entries
      depth--
    } else if (depth === entryDepth) entry += character
    else if (depth === entryDepth - 2 && query.startsWith(name, at)) isInList = true
  }
  return entries
}

/** The depth of the list's entries: `({QUERY :targetList ({TARGETENTRY …})})`. */
const entryDepth = 4
