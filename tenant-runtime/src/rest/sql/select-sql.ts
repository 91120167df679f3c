// A reading plan as one SELECT: embedded relations are lateral joins that make their JSON. Pure.
import type { Relation } from '../registry/catalog.ts'
import {
  columnsOf,
  isAggregated,
  isSamePath,
  type Aggregation,
  type Embedding,
  type OtherOrder,
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
  /** Returns a row as a value of its relation's type; its name, if it has this type. */
  row?: (table: string) => string
}

export function sourceOf({ table }: Relation): Source {
  return { from: identifier(table) }
}

/** Returns a name for the rows of a WITH that differs from all relations which the plan reads. */
export function freeName(wanted: string, plan: ReadPlan | undefined): string {
  const taken = new Set<string>()
  const add = ({ relation, embeddings, order }: ReadPlan) => {
    taken.add(relation.table)
    for (const { by } of order) if (by?.kind === 'row') taken.add(by.relation.table)
    for (const { junction, plan } of embeddings) {
      taken.add(junction?.table ?? '')
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
    orderSql(plan.order, { name: table, row: rowOf(source, table) }, joined, parameters, isGrouped ? outputs : []),
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
    const lateral = lateralSql(embedding, { name: table, row: rowOf(source, table) }, parameters)
    joins +=
      ` ${embedding.isInner ? 'join' : 'left join'} lateral (${lateral}) ${join.table}` +
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

function rowOf({ row }: Source, table: string): string {
  return row === undefined ? table : row(table)
}

/** A row of the parent: its name, and SQL of its value. */
interface ParentRow {
  name: string
  row: string
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
  { relationship, junction, isSpread, isEmpty, plan }: Embedding,
  { name: parent, row }: ParentRow,
  parameters: Parameters,
): string {
  const { through, isToMany, pairs, computed } = relationship
  const source: Source =
    computed === undefined ? sourceOf(plan.relation) : { from: `${identifier(computed.routine)}(${row})` }
  if (through === undefined) {
    source.where = (table) => pairs.map(([near, far]) => `${table}.${identifier(far)} = ${parent}.${identifier(near)}`)
  } else if (junction !== undefined) {
    const between = parameters.table()
    source.joined = (table) => {
      const equal = through.far.map(([own, far]) => `${between}.${identifier(own)} = ${table}.${identifier(far)}`)
      return ` join ${identifier(junction.table)} ${between} on ${equal.join(' and ')}`
    }
    source.where = () =>
      through.near.map(([near, own]) => `${between}.${identifier(own)} = ${parent}.${identifier(near)}`)
  }
  // Only the existence of a row is needed.
  if (isEmpty) return `select true as found from (${matchingSql(plan, source, parameters)} limit 1) r`
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
  path?: PlannedPath | undefined
  /** The column of a spread relation. */
  spread?: { embedding: Embedding; position: number }
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
        },
      ]
    }
    case 'spread': {
      const { table: join, embedding } = joinOf(joined, field.embedding)
      return field.columns.map((column, position) => {
        const sql = aggregateSql(`${join}.c${position}${isGrouped && column.isJson === true ? '::jsonb' : ''}`, column)
        const isAggregate = column.aggregate !== undefined
        return { name: column.name, sql, isAggregate, spread: { embedding, position } }
      })
    }
  }
}

function valueSql(value: PlannedValue, table: string, parameters: Parameters): string {
  const { path, cast, aggregate } = value
  // A whole row, which its parent counts.
  if (path === undefined) return aggregateSql(aggregate === undefined ? '1' : '*', value)
  const plain = pathSql(table, path, parameters)
  const toJson = path.column.representation?.toJson
  if (toJson !== undefined && path.steps.length === 0 && cast === undefined && aggregate === undefined)
    return `${identifier(toJson)}(${plain})`
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
  table: ParentRow,
  joined: readonly Joined[],
  parameters: Parameters,
  groups: readonly Output[],
): string {
  if (order.length === 0) return ''
  const terms = order.map((term) => {
    const location = groups.findIndex((output) => isOrderedBy(output, term)) + 1
    const value = location > 0 ? String(location) : termSql(term, table, joined, parameters)
    return `${value} ${term.direction}${term.nulls === undefined ? '' : ` nulls ${term.nulls}`}`
  })
  return ` order by ${terms.join(', ')}`
}

function isOrderedBy({ path, spread }: Output, order: PlannedOrder): boolean {
  if (order.by === undefined) return isSamePath(path, order.path)
  return order.by.kind === 'spread' && spread?.embedding === order.by.embedding && spread.position === order.by.position
}

function termSql(
  { path, by }: PlannedOrder,
  table: ParentRow,
  joined: readonly Joined[],
  parameters: Parameters,
): string {
  if (by === undefined) return pathSql(table.name, path, parameters)
  return by.kind === 'row'
    ? relatedSql(by, path, table, parameters)
    : `${joinOf(joined, by.embedding).table}.c${by.position}`
}

/** Returns a value of the one related row of each row. */
function relatedSql(
  { relationship, relation }: Extract<OtherOrder, { kind: 'row' }>,
  path: PlannedPath,
  { name: table, row }: ParentRow,
  parameters: Parameters,
): string {
  const other = parameters.table()
  const value = pathSql(other, path, parameters)
  if (relationship.computed !== undefined)
    return `(select ${value} from ${identifier(relationship.computed.routine)}(${row}) ${other} limit 1)`
  const equal = relationship.pairs
    .map(([near, far]) => `${other}.${identifier(far)} = ${table}.${identifier(near)}`)
    .join(' and ')
  return `(select ${value} from ${identifier(relation.table)} ${other} where ${equal} limit 1)`
}
