// A reading plan as one SELECT: embedded relations are lateral joins that make their JSON. Pure.
import type { Relation } from '../registry/catalog.ts'
import {
  columnsOf,
  isAggregated,
  isSamePath,
  type Aggregation,
  type Embedding,
  type PlannedField,
  type PlannedOrder,
  type PlannedPath,
  type PlannedValue,
  type ReadPlan,
} from '../plan/plan.ts'
import { conditionSql, whereSql } from './condition-sql.ts'
import { identifier } from './names.ts'
import type { Parameters } from './parameters.ts'
import { pathSql } from './path-sql.ts'

/** The source of a plan's rows: its relation, or the result of a change or a function. */
export interface Source {
  /** The SQL after FROM, without a name. */
  from: string
  /** Returns further tables that are joined. */
  joined?: (table: string) => string
  /** Returns further conditions. */
  where?: (table: string) => string[]
}

export function sourceOf({ name }: Relation): Source {
  return { from: identifier(name) }
}

/** Returns a name for the rows of a WITH that differs from all relations which the plan reads. */
export function freeName(wanted: string, plan: ReadPlan | undefined): string {
  const taken = new Set<string>()
  const add = ({ relation, embeddings, order }: ReadPlan) => {
    taken.add(relation.name)
    for (const { by } of order) taken.add(by?.relation.name ?? '')
    for (const { junction, plan } of embeddings) {
      taken.add(junction?.name ?? '')
      add(plan)
    }
  }
  if (plan !== undefined) add(plan)
  let name = wanted
  while (taken.has(name)) name += '_'
  return identifier(name)
}

interface Joined {
  embedding: Embedding
  /** The name of the lateral join. */
  table: string
}

/** The names of columns: those of the response, or `c0`, `c1`, … where two may have the same name. */
export type Naming = 'names' | 'positions'

/** Returns `select … from … where … order by … limit …`. `more` returns further columns. */
export function selectSql(
  plan: ReadPlan,
  source: Source,
  parameters: Parameters,
  naming: Naming = 'names',
  more: (table: string) => string[] = () => [],
): string {
  const table = parameters.table()
  const { text, joined } = bodySql(plan, plan.embeddings, table, source, parameters)
  const isGrouped = isAggregated(plan)
  const outputs = plan.fields.flatMap((field) => outputsOf(field, table, joined, isGrouped, parameters))
  const groups = isGrouped ? outputs.flatMap(({ isAggregate }, n) => (isAggregate ? [] : [String(n + 1)])) : []
  const selected = outputs.map(({ sql, name }, n) => `${sql} as ${naming === 'names' ? identifier(name) : `c${n}`}`)
  return [
    `select ${[...selected, ...more(table)].join(', ')} ${text}`,
    groups.length === 0 ? '' : ` group by ${groups.join(', ')}`,
    orderSql(plan.order, table, parameters, isGrouped ? outputs : []),
    // A literal number, because the planner would estimate a tenth of all rows for a parameter.
    plan.limit === undefined ? '' : ` limit ${String(BigInt(plan.limit))}`,
    plan.offset === 0 ? '' : ` offset ${parameters.add(plan.offset)}`,
  ].join('')
}

/** Returns the outputs of a row with this name; undefined when they need more than that row. */
export function outputsSql(plan: ReadPlan, table: string, parameters: Parameters): string | undefined {
  if (plan.embeddings.length > 0 || isAggregated(plan)) return undefined
  return plan.fields
    .flatMap((field) => outputsOf(field, table, [], false, parameters))
    .map(({ sql, name }) => `${sql} as ${identifier(name)}`)
    .join(', ')
}

/** Returns only the matching rows, for counting. */
export function matchingSql(plan: ReadPlan, source: Source, parameters: Parameters): string {
  if (isAggregated(plan)) return selectSql({ ...plan, order: [], limit: undefined, offset: 0 }, source, parameters)
  const needed = plan.embeddings.filter(
    (embedding) => embedding.isInner || plan.where.some((condition) => refersTo(condition, embedding)),
  )
  const { text } = bodySql(plan, needed, parameters.table(), source, parameters)
  return `select 1 ${text}`
}

function refersTo(condition: ReadPlan['where'][number], embedding: Embedding): boolean {
  if (condition.kind === 'has') return condition.embedding === embedding
  return 'members' in condition && condition.members.some((member) => refersTo(member, embedding))
}

/** Returns `from … where …`. */
function bodySql(
  plan: ReadPlan,
  embeddings: readonly Embedding[],
  table: string,
  source: Source,
  parameters: Parameters,
): { text: string; joined: Joined[] } {
  const joined: Joined[] = []
  let joins = source.joined?.(table) ?? ''
  for (const embedding of embeddings) {
    const join = { embedding, table: parameters.table() }
    joins +=
      ` ${embedding.isInner ? 'join' : 'left join'} lateral (${lateralSql(embedding, table, parameters)}) ${join.table}` +
      ` on ${embedding.isInner ? `${join.table}.found` : 'true'}`
    joined.push(join)
  }
  const has = (embedding: Embedding) => `coalesce(${joinOf(joined, embedding).table}.found, false)`
  const conditions = [
    ...(source.where?.(table) ?? []),
    ...plan.where.map((condition) => conditionSql(condition, { table, parameters, has })),
  ]
  return { text: `from ${source.from} ${table}${joins}${whereSql(conditions)}`, joined }
}

function joinOf(joined: readonly Joined[], embedding: Embedding): Joined {
  const join = joined.find((join) => join.embedding === embedding)
  if (join === undefined) throw new Error('An embedding is not joined.')
  return join
}

/**
 * Returns the related rows of a row of `parent` as one row: `value` in JSON, or `c0`, `c1`, … of a spread; `found` when
 * there is one.
 */
function lateralSql(
  { relationship, junction, isSpread, plan }: Embedding,
  parent: string,
  parameters: Parameters,
): string {
  const { through, isToMany, pairs } = relationship
  const source: Source = { ...sourceOf(plan.relation) }
  if (through === undefined) {
    source.where = (table) => pairs.map(([near, far]) => `${table}.${identifier(far)} = ${parent}.${identifier(near)}`)
  } else if (junction !== undefined) {
    const between = parameters.table()
    source.joined = (table) => {
      const equal = through.far.map(([own, far]) => `${between}.${identifier(own)} = ${table}.${identifier(far)}`)
      return ` join ${identifier(junction.name)} ${between} on ${equal.join(' and ')}`
    }
    source.where = () =>
      through.near.map(([near, own]) => `${between}.${identifier(own)} = ${parent}.${identifier(near)}`)
  }
  // Only the existence of a row is needed.
  if (plan.fields.length === 0) return `select true as found from (${matchingSql(plan, source, parameters)} limit 1) r`
  const rows = selectSql(
    isToMany ? plan : { ...plan, order: [], limit: 1 },
    source,
    parameters,
    isSpread ? 'positions' : 'names',
  )
  if (isSpread) {
    const columns = columnsOf(plan.fields).map(
      (_, n) => `${isToMany ? `coalesce(json_agg(r.c${n}), '[]')` : `r.c${n}`} as c${n}, `,
    )
    return `select ${columns.join('')}${isToMany ? 'count(*) > 0' : 'true'} as found from (${rows}) r`
  }
  if (!isToMany) return `select row_to_json(r.*) as value, true as found from (${rows}) r`
  return `select coalesce(json_agg(r.*), '[]') as value, count(*) > 0 as found from (${rows}) r`
}

interface Output {
  name: string
  sql: string
  isAggregate: boolean
  /** The path of a value that is not aggregated. */
  path: PlannedPath | undefined
}

function outputsOf(
  field: PlannedField,
  table: string,
  joined: readonly Joined[],
  isGrouped: boolean,
  parameters: Parameters,
): Output[] {
  switch (field.kind) {
    case 'value':
      return [
        {
          name: field.name,
          sql: valueSql(field, table, parameters),
          isAggregate: field.aggregate !== undefined,
          path: field.aggregate === undefined ? field.path : undefined,
        },
      ]
    case 'embedded': {
      const { relationship } = field.embedding
      const value = `${joinOf(joined, field.embedding).table}.value`
      // JSON of type `json` cannot be compared, and therefore not grouped.
      const sql = isGrouped ? `${value}::jsonb` : value
      return [
        {
          name: field.name,
          sql: relationship.isToMany ? `coalesce(${sql}, '[]')` : sql,
          isAggregate: false,
          path: undefined,
        },
      ]
    }
    case 'spread': {
      const { table: join, embedding } = joinOf(joined, field.embedding)
      const isJson = isGrouped && embedding.relationship.isToMany
      return field.columns.map((column, n) => {
        const sql = aggregateSql(`${join}.c${n}${isJson ? '::jsonb' : ''}`, column)
        return { name: column.name, sql, isAggregate: column.aggregate !== undefined, path: undefined }
      })
    }
  }
}

function valueSql(value: PlannedValue, table: string, parameters: Parameters): string {
  const { path, cast, aggregate } = value
  // A whole row, which its parent counts.
  if (path === undefined) return aggregateSql(aggregate === undefined ? '1' : '*', value)
  const plain = pathSql(table, path, parameters)
  return aggregateSql(cast === undefined ? plain : `${plain}::${cast}`, value)
}

function aggregateSql(value: string, { aggregate, aggregateCast }: Aggregation): string {
  const made = aggregate === undefined ? value : `${aggregate}(${value})`
  return aggregateCast === undefined ? made : `${made}::${aggregateCast}`
}

/**
 * Returns the ORDER BY clause.
 * @param groups outputs of grouped rows, which are ordered by their positions, because Postgres knows these to be the same
 */
function orderSql(
  order: readonly PlannedOrder[],
  table: string,
  parameters: Parameters,
  groups: readonly Output[],
): string {
  if (order.length === 0) return ''
  const terms = order.map(({ path, direction, nulls, by }) => {
    const location = groups.findIndex((output) => isSamePath(output.path, path)) + 1
    const value =
      by !== undefined
        ? relatedSql(by, path, table, parameters)
        : location > 0
          ? String(location)
          : pathSql(table, path, parameters)
    return `${value} ${direction}${nulls === undefined ? '' : ` nulls ${nulls}`}`
  })
  return ` order by ${terms.join(', ')}`
}

/** Returns a value of the one related row of each row. */
function relatedSql(
  { relationship, relation }: NonNullable<PlannedOrder['by']>,
  path: PlannedPath,
  table: string,
  parameters: Parameters,
): string {
  const other = parameters.table()
  const equal = relationship.pairs
    .map(([near, far]) => `${other}.${identifier(far)} = ${table}.${identifier(near)}`)
    .join(' and ')
  return `(select ${pathSql(other, path, parameters)} from ${identifier(relation.name)} ${other} where ${equal} limit 1)`
}
