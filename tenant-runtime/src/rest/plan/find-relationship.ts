// Finds the relationship from a relation to one that `select` names: by a function of this name, or by the foreign keys,
// with a hint where there are several.
import { nearest } from '@tenantry/contract'
import type { Catalog, Relation } from '../registry/catalog.ts'
import { relationshipsOf, type Relationship } from '../registry/relationships.ts'
import { restError } from '../rest-error.ts'

/**
 * Finds the relationship.
 * @throws RuntimeError when there is none (PGRST200), or more than one (PGRST201)
 */
export function findRelationship(
  catalog: Catalog,
  from: Relation,
  target: string,
  hint: string | undefined,
): Relationship {
  const computed = from.computedRelationships.get(target)
  if (computed !== undefined && catalog.relations.has(computed.to))
    return { ...computed, isOneToOne: false, pairs: [], through: undefined, computed }
  const all = relationshipsOf(catalog, from.name)
  const named = all.filter(({ to }) => to === target)
  const meant =
    named.length > 0 ? named : all.filter((way) => way.through === undefined && isCalled(catalog, from, way, target))
  const hinted = hint === undefined ? meant : meant.filter((way) => isHinted(way, hint))
  // Tables that have more than the keys of two others are junctions only when no other relationship exists.
  const plain = hinted.filter(({ through }) => through === undefined || through.isKeyed)
  const ways = plain.length > 0 ? plain : hinted
  const [first, second] = ways
  if (first === undefined) throw noRelationship(catalog, from, target, hint)
  if (second === undefined) return first
  // A table that references itself, named as a table, means the rows that reference this one.
  const [one] = ways.filter(({ isToMany }) => isToMany)
  if (ways.length === 2 && first.name === second.name && first.through === undefined && one !== undefined) return one
  throw restError('AMBIGUOUS', {
    code: 'PGRST201',
    message: `Could not embed because more than one relationship was found for '${from.name}' and '${target}'`,
    details: ways.map((way) => describe(from, way)),
    hint:
      `Try changing '${target}' to one of the following: ${ways.map((way) => `'${target}!${way.name}'`).join(', ')}. ` +
      "Find the desired relationship in the 'details' key.",
  })
}

/** Whether the target is the foreign key to a table, or the column of `from` at its end of the relationship. */
function isCalled(
  { relations }: Catalog,
  from: Relation,
  { name, to, isToMany, pairs }: Relationship,
  target: string,
): boolean {
  if (relations.get(to)?.kind === 'view') return false
  // A table that references itself has the same foreign key at both ends, which means the row that it references.
  if (to === from.name && isToMany) return false
  return name === target || (pairs.length === 1 && pairs[0]?.[0] === target)
}

function isHinted(way: Relationship, hint: string): boolean {
  if (way.name === hint || way.to === hint) return true
  const ends = way.through === undefined ? way.pairs : []
  return ends.length === 1 && (ends[0]?.[0] === hint || ends[0]?.[1] === hint)
}

function describe(
  from: Relation,
  { name, to, isToMany, isOneToOne, pairs, through }: Relationship,
): Record<string, string> {
  const list = (columns: readonly string[]) => `(${columns.join(', ')})`
  const relationship =
    through === undefined
      ? `${name} using ${from.name}${list(pairs.map(([near]) => near))} and ${to}${list(pairs.map(([, far]) => far))}`
      : `${through.relation} using ${through.names[0]}${list(through.near.map(([, column]) => column))}` +
        ` and ${through.names[1]}${list(through.far.map(([column]) => column))}`
  const direct = isOneToOne ? 'one-to-one' : isToMany ? 'one-to-many' : 'many-to-one'
  return {
    cardinality: through === undefined ? direct : 'many-to-many',
    embedding: `${from.name} with ${to}`,
    relationship,
  }
}

function noRelationship(catalog: Catalog, from: Relation, target: string, hint: string | undefined) {
  const meant = nearest(
    target,
    relationshipsOf(catalog, from.name).map(({ to }) => to),
  )
  return restError('INVALID_QUERY', {
    code: 'PGRST200',
    message: `Could not find a relationship between '${from.name}' and '${target}' in the schema cache`,
    details:
      `Searched for a foreign key relationship between '${from.name}' and '${target}'` +
      `${hint === undefined ? '' : ` using the hint '${hint}'`} in the schema '${catalog.schema}', but no matches were found.`,
    ...(meant === undefined || meant === target
      ? {}
      : { hint: `Perhaps you meant '${meant}' instead of '${target}'.` }),
  })
}
