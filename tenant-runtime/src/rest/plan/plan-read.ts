// Plans a query against the catalog: resolves every column, type and relation, or throws an error that names the unknown
// one. Pure.
import type { Catalog, Column, Relation } from '../registry/catalog.ts'
import type { Relationship } from '../registry/relationships.ts'
import type { Condition } from '../request/read-conditions.ts'
import type { Part, Query } from '../request/read-query.ts'
import { isEmptySelection, type Selected, type SelectedField, type SelectedRelation } from '../request/read-select.ts'
import { restError } from '../rest-error.ts'
import { castType } from './cast-types.ts'
import { PlanBounds } from './plan-bounds.ts'
import { findRelationship } from './find-relationship.ts'
import { notEmbedded, planOrder, requireGrouped } from './plan-order.ts'
import { columnNamed, planPath } from './plan-path.ts'
import {
  columnsOf,
  isAggregated,
  unaggregated,
  ungrouped,
  type Embedding,
  type PlannedCondition,
  type PlannedField,
  type PlanScope,
  type ReadPlan,
} from './plan.ts'

/** The number of rows of a list without a limit. */
export const defaultRows = 1_000
/** The maximum number of rows of a list. */
export const maxRows = 1_000_000
const maxEmbeddings = 64
/** The maximum number of columns in a row of Postgres. */
const maxColumns = 1_600
const noPart: Part = { conditions: [], order: [], limit: undefined, offset: undefined }
const everything: Selected[] = [{ kind: 'all' }]

/**
 * Plans a list.
 * @throws RuntimeError for a name that the catalog does not have
 */
export function planRead(scope: PlanScope, relation: Relation, query: Query): ReadPlan {
  const planner = new Planner(scope, query)
  const plan = planner.plan(relation, query.select ?? everything, query.own, [])
  planner.requireAllEmbedded()
  const limit = query.own.limit ?? defaultRows
  return { ...plan, limit: Math.min(limit, maxRows) }
}

/**
 * Plans the one row with this key.
 * @throws RuntimeError NOT_FOUND when the relation does not have a key of one column
 */
export function planRecord(scope: PlanScope, relation: Relation, id: string, query: Query): ReadPlan {
  const [key, ...others] = relation.key
  const column = key === undefined ? undefined : relation.columns.get(key)
  if (column === undefined || others.length > 0) {
    throw restError('NOT_FOUND', {
      code: 'PGRST125',
      message: `"${relation.name}" does not have a key of one field. Select its records with filters.`,
    })
  }
  const plan = planRead(scope, relation, query)
  const test: PlannedCondition = {
    kind: 'test',
    negated: false,
    path: { column, steps: [] },
    test: { operator: 'eq', value: id, quantifier: undefined, language: undefined },
  }
  return { ...plan, where: [test, ...plan.where.filter(({ kind }) => kind !== 'own')], order: [], limit: 1, offset: 0 }
}

/** Returns the plan for reading all changed rows, without the filters, which the change has already applied. */
export function withoutFilters(plan: ReadPlan): ReadPlan {
  return { ...plan, where: [], limit: undefined }
}

class Planner {
  readonly #scope: PlanScope
  readonly #query: Query
  readonly #usedParts = new Set<Part>()
  readonly #bounds = new PlanBounds()
  #embeddings = 0

  constructor(scope: PlanScope, query: Query) {
    this.#scope = scope
    this.#query = query
  }

  plan(relation: Relation, select: readonly Selected[], part: Part, location: readonly string[]): ReadPlan {
    const embeddings: Embedding[] = []
    const fields: PlannedField[] = []
    for (const item of select) {
      switch (item.kind) {
        case 'all':
          for (const column of relation.columns.values()) fields.push(plainField(column))
          break
        case 'field':
          fields.push(planField(this.#scope.catalog, relation, item))
          break
        case 'relation': {
          const embedding = this.#embed(relation, item, location)
          embeddings.push(embedding)
          if (item.isSpread) fields.push(spread(embedding))
          else if (!embedding.isEmpty)
            fields.push({ kind: 'embedded', name: outputName(item.alias ?? item.target), embedding })
        }
      }
    }
    if (columnsOf(fields).length > maxColumns)
      throw restError('INVALID_QUERY', {
        code: 'PGRST100',
        message: `Invalid query parameter "select": at most ${maxColumns} columns can be selected.`,
      })
    this.#bounds.addOutputs(select.length)
    this.#bounds.addList(fields.filter((field) => field.kind === 'value'))
    rejectRepeated(relation, select, location)
    const isGrouped = isAggregated({ fields })
    if (isGrouped && !this.#scope.allowsAggregates)
      throw restError('INVALID_QUERY', { code: 'PGRST123', message: 'Use of aggregate functions is not allowed' })
    const order = part.order.map((order) => {
      const planned = planOrder(relation, embeddings, fields, order)
      if (planned.by === undefined) this.#bounds.addOrder(planned.path.column)
      return planned
    })
    if (isGrouped) for (const one of order) requireGrouped(fields, one)
    return {
      relation,
      fields,
      embeddings,
      where: [
        ...this.#own(relation),
        ...part.conditions.map((condition) => this.#planCondition(relation, embeddings, condition)),
      ],
      order,
      limit: part.limit,
      offset: part.offset ?? 0,
    }
  }

  #embed(from: Relation, item: SelectedRelation, location: readonly string[]): Embedding {
    if (++this.#embeddings > maxEmbeddings)
      throw restError('INVALID_QUERY', {
        code: 'PGRST100',
        message: `Invalid query parameter "select": at most ${maxEmbeddings} relations can be embedded.`,
      })
    const relationship = findRelationship(this.#scope.catalog, from, item.target, item.hint)
    const { relations } = this.#scope.catalog
    const relation = requireRelation(relations.get(relationship.to))
    const names = [...new Set([item.alias ?? item.target, item.target])]
    const entries = this.#query.embedded.filter(
      (entry) =>
        entry.location.length === location.length + 1 && location.every((name, n) => name === entry.location[n]),
    )
    const entry = names
      .map((name) => entries.find((entry) => entry.location.at(-1) === name))
      .find((found) => found !== undefined)
    if (entry !== undefined) this.#usedParts.add(entry.part)
    return {
      names,
      relationship,
      junction:
        relationship.through === undefined ? undefined : requireRelation(relations.get(relationship.through.relation)),
      isInner: item.join === 'inner',
      isSpread: item.isSpread,
      isEmpty: isEmptySelection(item.select),
      plan: this.plan(relation, item.select, limited(entry?.part ?? noPart, relationship), [
        ...location,
        entry?.location.at(-1) ?? names[0] ?? item.target,
      ]),
    }
  }

  #own({ ownerField, isOwnersOnly, columns }: Relation): PlannedCondition[] {
    const column = ownerField === undefined ? undefined : columns.get(ownerField)
    return column === undefined || !isOwnersOnly || this.#scope.seesAll ? [] : [{ kind: 'own', negated: false, column }]
  }

  #planCondition(relation: Relation, embeddings: readonly Embedding[], condition: Condition): PlannedCondition {
    if (condition.kind !== 'filter') {
      return {
        kind: condition.kind,
        negated: condition.negated,
        members: condition.members.map((member) => this.#planCondition(relation, embeddings, member)),
      }
    }
    const { path, negated, test } = condition
    if (path.steps.length === 0 && test.operator === 'is' && columnNamed(relation, path.column) === undefined) {
      const embedding = embeddings.find(({ names }) => names.includes(path.column))
      if (embedding !== undefined && (test.word === 'null' || test.word === 'not_null')) {
        return { kind: 'has', negated: (test.word === 'null') !== negated, embedding }
      }
    }
    const planned = planPath(relation, path)
    this.#bounds.addFilter(planned.column)
    return { kind: 'test', negated, path: planned, test }
  }

  requireAllEmbedded(): void {
    const unused = this.#query.embedded.find(({ part }) => !this.#usedParts.has(part))
    if (unused !== undefined) throw notEmbedded(unused.location.join('.'))
  }
}

/** Checks that no two relations have the same name. Postgres reports the same error for the statements of PostgREST. */
function rejectRepeated({ name }: Relation, select: readonly Selected[], location: readonly string[]): void {
  const names = new Set<string>()
  for (const item of select) {
    if (item.kind !== 'relation') continue
    const named = item.alias ?? item.target
    if (names.has(named))
      throw restError('INVALID_QUERY', {
        code: '42712',
        message: `table name "${name}_${named}_${location.length + 1}" specified more than once`,
      })
    names.add(named)
  }
}

/** Returns the part with the default limit of a list, if it selects a list. */
function limited(part: Part, { isToMany }: Relationship): Part {
  return isToMany ? { ...part, limit: Math.min(part.limit ?? defaultRows, maxRows) } : part
}

function requireRelation(relation: Relation | undefined): Relation {
  if (relation === undefined) throw new Error('A relationship references a relation that is not in the catalog.')
  return relation
}

/** Plans a spread relation. The parent aggregates what is aggregated of a single row. */
function spread(embedding: Embedding): PlannedField {
  const { relationship, plan } = embedding
  const columns = columnsOf(plan.fields)
  if (relationship.isToMany) {
    if (isAggregated(plan))
      throw restError('INVALID_QUERY', {
        code: 'PGRST127',
        message: 'Feature not implemented',
        details: 'Aggregates are not implemented for one-to-many or many-to-many spreads.',
      })
    return {
      kind: 'spread',
      embedding,
      columns: columns.map((column) => ({ ...column, ...unaggregated, isJson: true })),
    }
  }
  embedding.plan = { ...plan, fields: ungrouped(plan.fields) }
  return { kind: 'spread', embedding, columns }
}

function plainField(column: Column): PlannedField {
  return {
    kind: 'value',
    name: column.name,
    path: { column, steps: [] },
    cast: undefined,
    aggregate: undefined,
    aggregateCast: undefined,
  }
}

function planField(
  { types }: Catalog,
  relation: Relation,
  { alias, path, cast, aggregate, aggregateCast }: SelectedField,
): PlannedField {
  const casts = { cast: castType(cast, types), aggregate, aggregateCast: castType(aggregateCast, types) }
  if (path === undefined) return { kind: 'value', name: outputName(alias ?? 'count'), path, ...casts }
  // Older clients request the number of rows like this.
  if (
    path.column === 'count' &&
    path.steps.length === 0 &&
    aggregate === undefined &&
    columnNamed(relation, 'count') === undefined
  ) {
    return {
      kind: 'value',
      name: outputName(alias ?? 'count'),
      path: undefined,
      cast: undefined,
      aggregate: 'count',
      aggregateCast: casts.cast,
    }
  }
  const planned = planPath(relation, path)
  const leaf = path.steps.findLast(({ key }) => typeof key === 'string')?.key
  return { kind: 'value', name: outputName(alias ?? aggregate ?? String(leaf ?? path.column)), path: planned, ...casts }
}

/** Checks the name of an output column. Postgres would truncate longer ones. */
function outputName(name: string): string {
  if (name !== '' && Buffer.byteLength(name) <= 63) return name
  throw restError('INVALID_QUERY', {
    code: 'PGRST100',
    message: `Invalid query parameter "select": the name "${name.slice(0, 100)}" must be 1 to 63 bytes long.`,
  })
}
