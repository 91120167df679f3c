// Plans a query against the catalog: resolves every column, type and relation, or throws an error that names the unknown
// one. Pure.
import type { Column, Relation } from '../registry/catalog.ts'
import type { Path } from '../request/json-path.ts'
import type { Condition } from '../request/read-conditions.ts'
import type { Order, Part, Query } from '../request/read-query.ts'
import type { Selected, SelectedField, SelectedRelation } from '../request/read-select.ts'
import { didYouMean, restError } from '../rest-error.ts'
import { castType } from './cast-types.ts'
import { findRelationship } from './find-relationship.ts'
import {
  columnsOf,
  isAggregated,
  isSamePath,
  ungrouped,
  type Embedding,
  type PlannedCondition,
  type PlannedField,
  type PlannedOrder,
  type PlannedPath,
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
          fields.push(planField(relation, item))
          break
        case 'relation': {
          const embedding = this.#embed(relation, item, location)
          embeddings.push(embedding)
          if (item.isSpread) fields.push(spread(embedding))
          else if (item.select.length > 0)
            fields.push({ kind: 'embedded', name: outputName(item.alias ?? item.target), embedding })
        }
      }
    }
    if (columnsOf(fields).length > maxColumns)
      throw restError('INVALID_QUERY', {
        code: 'PGRST100',
        message: `Invalid query parameter "select": at most ${maxColumns} columns can be selected.`,
      })
    const order = part.order.map((order) => this.#planOrder(relation, embeddings, order))
    if (isAggregated({ fields })) for (const one of order) requireGrouped(fields, one)
    return {
      relation,
      fields,
      embeddings,
      where: [
        ...this.#own(relation),
        ...part.conditions.map((condition) => planCondition(relation, embeddings, condition)),
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
      plan: this.plan(relation, item.select, entry?.part ?? noPart, [
        ...location,
        entry?.location.at(-1) ?? names[0] ?? item.target,
      ]),
    }
  }

  #planOrder(relation: Relation, embeddings: readonly Embedding[], order: Order): PlannedOrder {
    const { direction, nulls } = order
    if (order.relation === undefined)
      return { path: planPath(relation, order.path, 'order'), direction, nulls, by: undefined }
    const { relation: name } = order
    const embedding = embeddings.find(({ names }) => names.includes(name))
    if (embedding === undefined) throw notEmbedded(name)
    const { relationship, plan } = embedding
    if (relationship.isToMany) {
      throw restError('INVALID_QUERY', {
        code: 'PGRST118',
        message: `A related order on '${name}' is not possible`,
        details: `'${relation.name}' and '${name}' do not form a many-to-one or one-to-one relationship`,
      })
    }
    return {
      path: planPath(plan.relation, order.path, 'order'),
      direction,
      nulls,
      by: { relationship, relation: plan.relation },
    }
  }

  #own({ ownerField, isOwnersOnly, columns }: Relation): PlannedCondition[] {
    const column = ownerField === undefined ? undefined : columns.get(ownerField)
    return column === undefined || !isOwnersOnly || this.#scope.seesAll ? [] : [{ kind: 'own', negated: false, column }]
  }

  requireAllEmbedded(): void {
    const unused = this.#query.embedded.find(({ part }) => !this.#usedParts.has(part))
    if (unused !== undefined) throw notEmbedded(unused.location.join('.'))
  }
}

function notEmbedded(name: string) {
  return restError('INVALID_QUERY', {
    code: 'PGRST108',
    message: `'${name}' is not an embedded resource in this request`,
    hint: `Verify that '${name}' is included in the 'select' query parameter.`,
  })
}

function requireRelation(relation: Relation | undefined): Relation {
  if (relation === undefined) throw new Error('A relationship references a relation that is not in the catalog.')
  return relation
}

/** Plans a spread relation. The parent aggregates what is aggregated of a single row. */
function spread(embedding: Embedding): PlannedField {
  const { relationship, plan } = embedding
  const columns = columnsOf(plan.fields)
  const none = { aggregate: undefined, aggregateCast: undefined }
  if (relationship.isToMany)
    return { kind: 'spread', embedding, columns: columns.map(({ name }) => ({ name, ...none })) }
  embedding.plan = { ...plan, fields: ungrouped(plan.fields) }
  return { kind: 'spread', embedding, columns }
}

/** Checks that the order of groups is by a column that they are grouped by. */
function requireGrouped(fields: readonly PlannedField[], { path, by }: PlannedOrder): void {
  if (
    by === undefined &&
    fields.some((field) => field.kind === 'value' && field.aggregate === undefined && isSamePath(field.path, path))
  )
    return
  throw restError('INVALID_QUERY', {
    code: '42803',
    message:
      'Invalid query parameter "order": aggregated rows can only be ordered by columns that they are grouped by, ' +
      `and "select" has no "${path.column.name}" of this form.`,
  })
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

function planField(relation: Relation, { alias, path, cast, aggregate, aggregateCast }: SelectedField): PlannedField {
  const casts = { cast: castType(cast), aggregate, aggregateCast: castType(aggregateCast) }
  if (path === undefined) return { kind: 'value', name: outputName(alias ?? 'count'), path, ...casts }
  // Older clients request the number of rows like this.
  if (path.column === 'count' && path.steps.length === 0 && aggregate === undefined && !relation.columns.has('count')) {
    return {
      kind: 'value',
      name: outputName(alias ?? 'count'),
      path: undefined,
      cast: undefined,
      aggregate: 'count',
      aggregateCast: casts.cast,
    }
  }
  const planned = planPath(relation, path, 'select')
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

function planPath(relation: Relation, { column, steps }: Path, parameter: string): PlannedPath {
  const found = relation.columns.get(column)
  if (found !== undefined) return { column: found, steps }
  throw restError('INVALID_QUERY', {
    code: '42703',
    message:
      parameter === 'columns'
        ? `The collection "${relation.name}" has no field "${column}".`
        : `Invalid query parameter "${parameter}": the collection "${relation.name}" has no field "${column}".`,
    ...didYouMean(column, relation.columns.keys()),
  })
}

function planCondition(relation: Relation, embeddings: readonly Embedding[], condition: Condition): PlannedCondition {
  if (condition.kind !== 'filter') {
    return {
      kind: condition.kind,
      negated: condition.negated,
      members: condition.members.map((member) => planCondition(relation, embeddings, member)),
    }
  }
  const { path, negated, test } = condition
  if (path.steps.length === 0 && test.operator === 'is' && !relation.columns.has(path.column)) {
    const embedding = embeddings.find(({ names }) => names.includes(path.column))
    if (embedding !== undefined && (test.word === 'null' || test.word === 'not_null')) {
      return { kind: 'has', negated: (test.word === 'null') !== negated, embedding }
    }
  }
  return { kind: 'test', negated, path: planPath(relation, path, path.column), test }
}
