// Plans the order of rows: by their own columns, or by those of a related row. Pure.
import type { Relation } from '../registry/catalog.ts'
import type { Path } from '../request/json-path.ts'
import type { Order } from '../request/read-query.ts'
import { restError } from '../rest-error.ts'
import { planPath } from './plan-path.ts'
import {
  isSamePath,
  type Embedding,
  type PlannedField,
  type PlannedOrder,
  type PlannedPath,
  type SpreadColumn,
} from './plan.ts'

/**
 * Plans one term.
 * @param fields the fields of the rows
 * @throws RuntimeError for an unknown column (42703), or a relation that is not embedded (PGRST108) or to-many (PGRST118)
 */
export function planOrder(
  relation: Relation,
  embeddings: readonly Embedding[],
  fields: readonly PlannedField[],
  { relation: name, path, direction, nulls }: Order,
): PlannedOrder {
  if (name === undefined) return { path: planPath(relation, path), direction, nulls, by: undefined }
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
  const spread = fields.find((field) => field.kind === 'spread' && field.embedding === embedding)
  const position = spread?.kind === 'spread' ? positionOf(spread.columns, path) : -1
  const column = spread?.kind === 'spread' ? spread.columns[position] : undefined
  if (column?.path !== undefined)
    return { path: column.path, direction, nulls, by: { kind: 'spread', embedding, position } }
  return {
    path: aliased(plan.fields, path) ?? planPath(plan.relation, path),
    direction,
    nulls,
    by: { kind: 'row', relationship, relation: plan.relation },
  }
}

export function notEmbedded(name: string) {
  return restError('INVALID_QUERY', {
    code: 'PGRST108',
    message: `'${name}' is not an embedded resource in this request`,
    hint: `Verify that '${name}' is included in the 'select' query parameter.`,
  })
}

/** Finds the column of a spread relation, by its name in the response, or by its path. */
function positionOf(columns: readonly SpreadColumn[], { column, steps }: Path): number {
  const named =
    steps.length > 0
      ? -1
      : columns.findIndex(
          ({ name, path, aggregate }) => name === column && path !== undefined && aggregate === undefined,
        )
  if (named >= 0) return named
  return columns.findIndex(
    ({ path, cast, aggregate }) =>
      cast === undefined &&
      aggregate === undefined &&
      path?.column.name === column &&
      isSamePath(path, { column: path.column, steps }),
  )
}

/** Returns the path of a value that has this name in the response. */
function aliased(fields: readonly PlannedField[], { column, steps }: Path): PlannedPath | undefined {
  const field = fields.find(({ kind, ...field }) => kind === 'value' && 'name' in field && field.name === column)
  if (field?.kind !== 'value' || field.path === undefined) return undefined
  const { path, cast, aggregate } = field
  if (cast !== undefined || aggregate !== undefined || path.steps.at(-1)?.arrow === '->>') return undefined
  return { column: path.column, steps: [...path.steps, ...steps] }
}

/**
 * Checks that the order of groups is by a column that they are grouped by.
 * @throws RuntimeError INVALID_QUERY (42803)
 */
export function requireGrouped(fields: readonly PlannedField[], { path, by }: PlannedOrder): void {
  if (by?.kind === 'spread') return
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
