// Finds the relationship from a relation to one that `select` names, by the foreign keys, with a hint where there are
// several.
import { nearest } from '@tenantry/contract'
import { relationshipsOf, type Catalog, type Relation, type Relationship } from '../registry/catalog.ts'
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
  const all = relationshipsOf(catalog, from.name)
  const named = all.filter(({ to }) => to === target)
  const meant =
    named.length > 0 ? named : all.filter((way) => way.through === undefined && !way.isToMany && isCalled(way, target))
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

function isCalled({ name, columns }: Relationship, target: string): boolean {
  return name === target || (columns.length === 1 && columns[0] === target)
}

function isHinted(way: Relationship, hint: string): boolean {
  if (way.name === hint || way.to === hint) return true
  const ends = way.through === undefined ? way.pairs : []
  return ends.length === 1 && (ends[0]?.[0] === hint || ends[0]?.[1] === hint)
}

function describe(from: Relation, { name, to, isToMany, pairs, through }: Relationship): Record<string, string> {
  const list = (columns: readonly string[]) => columns.join(', ')
  const ends = `${from.name}(${list(pairs.map(([near]) => near))}) and ${to}(${list(pairs.map(([, far]) => far))})`
  return {
    cardinality: through !== undefined ? 'many-to-many' : isToMany ? 'one-to-many' : 'many-to-one',
    embedding: `${from.name} with ${to}`,
    relationship: through === undefined ? `${name} using ${ends}` : `through ${through.relation}`,
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
      `${hint === undefined ? '' : ` using the hint '${hint}'`}, but no matches were found.`,
    ...(meant === undefined || meant === target
      ? {}
      : { hint: `Perhaps you meant '${meant}' instead of '${target}'.` }),
  })
}
