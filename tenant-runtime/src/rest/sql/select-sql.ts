// A reading plan as one SELECT: embedded relations are lateral joins that make their JSON. Pure.
import type { Relation } from '../registry/catalog.ts'
import { isAggregated, type Embedding, type PlannedField, type PlannedOrder, type PlannedValue, type ReadPlan } from '../plan/plan.ts'
import { conditionSql, whereSql } from './condition-sql.ts'
import { identifier } from './names.ts'
import type { Parameters } from './parameters.ts'
import { pathSql } from './path-sql.ts'

/** Where the rows of a plan come from: its relation, or what a change or a function gave. */
export interface Source {
  /** SQL of what stands behind FROM, without a name. */
  from: string
  /** More tables, joined to it. */
  joined?: (table: string) => string
  /** More conditions. */
  where?: (table: string) => string[]
}

export function sourceOf({ name }: Relation): Source {
  return { from: identifier(name) }
}

interface Joined {
  embedding: Embedding
  /** Of the lateral join. */
  table: string
}

/** `select … from … where … order by … limit …`; `more`: columns beside those of the plan. */
export function selectSql(plan: ReadPlan, source: Source, parameters: Parameters, more: (table: string) => string[] = () => []): string {
  const table = parameters.table()
  const { text, joined } = bodySql(plan, plan.embeddings, table, source, parameters)
  const isGrouped = isAggregated(plan)
  const outputs = plan.fields.flatMap((field) => outputsOf(field, table, joined, isGrouped, parameters))
  const groups = isGrouped ? outputs.flatMap(({ isAggregate }, n) => (isAggregate ? [] : [String(n + 1)])) : []
  return [
    `select ${[...outputs.map(({ sql, name }) => `${sql} as ${identifier(name)}`), ...more(table)].join(', ')} ${text}`,
    groups.length === 0 ? '' : ` group by ${groups.join(', ')}`,
    orderSql(plan.order, table, parameters),
    // A whole number, which the planner must see: of a parameter it would think a tenth of all rows.
    plan.limit === undefined ? '' : ` limit ${String(BigInt(plan.limit))}`,
    plan.offset === 0 ? '' : ` offset ${parameters.add(plan.offset)}`,
  ].join('')
}

/** The rows alone that match, for counting. */
export function matchingSql(plan: ReadPlan, source: Source, parameters: Parameters): string {
  if (isAggregated(plan)) return selectSql({ ...plan, order: [], limit: undefined, offset: 0 }, source, parameters)
  const needed = plan.embeddings.filter((embedding) => embedding.isInner || plan.where.some((condition) => isAbout(condition, embedding)))
  const { text } = bodySql(plan, needed, parameters.table(), source, parameters)
  return `select 1 ${text}`
}

function isAbout(condition: ReadPlan['where'][number], embedding: Embedding): boolean {
  if (condition.kind === 'has') return condition.embedding === embedding
  return 'members' in condition && condition.members.some((member) => isAbout(member, embedding))
}

/** `from … where …` */
function bodySql(plan: ReadPlan, embeddings: readonly Embedding[], table: string, source: Source, parameters: Parameters): { text: string; joined: Joined[] } {
  const joined: Joined[] = []
  let joins = source.joined?.(table) ?? ''
  for (const embedding of embeddings) {
    const join = { embedding, table: parameters.table() }
    joins += ` ${embedding.isInner ? 'join' : 'left join'} lateral (${lateralSql(embedding, table, parameters)}) ${join.table} on ${embedding.isInner ? `${join.table}.found` : 'true'}`
    joined.push(join)
  }
  const has = (embedding: Embedding) => `coalesce(${joinOf(joined, embedding).table}.found, false)`
  const conditions = [...(source.where?.(table) ?? []), ...plan.where.map((condition) => conditionSql(condition, { table, parameters, has }))]
  return { text: `from ${source.from} ${table}${joins}${whereSql(conditions)}`, joined }
}

function joinOf(joined: readonly Joined[], embedding: Embedding): Joined {
  const join = joined.find((join) => join.embedding === embedding)
  if (join === undefined) throw new Error('an embedding is not joined')
  return join
}

/** Rows that belong to a row of `parent`, as one row: `value` in JSON, or `c0`, `c1`, … of a spread; `found`: there is one. */
function lateralSql({ relationship, junction, isSpread, plan }: Embedding, parent: string, parameters: Parameters): string {
  const { through, isToMany, pairs } = relationship
  const source: Source = { ...sourceOf(plan.relation) }
  if (through === undefined) {
    source.where = (table) => pairs.map(([near, far]) => `${table}.${identifier(far)} = ${parent}.${identifier(near)}`)
  } else if (junction !== undefined) {
    const between = parameters.table()
    source.joined = (table) =>
      ` join ${identifier(junction.name)} ${between} on ${through.far.map(([own, far]) => `${between}.${identifier(own)} = ${table}.${identifier(far)}`).join(' and ')}`
    source.where = () => through.near.map(([near, own]) => `${between}.${identifier(own)} = ${parent}.${identifier(near)}`)
  }
  // Nothing is asked of it but whether it is there.
  if (plan.fields.length === 0) return `select true as found from (${matchingSql(plan, source, parameters)} limit 1) r`
  const rows = selectSql(isToMany ? plan : { ...plan, order: [], limit: 1 }, source, parameters)
  if (isSpread) {
    // Named by their places: a name of theirs may be anything.
    const columns = spreadNames(plan).map((name, n) => `${isToMany ? `coalesce(json_agg(r.${identifier(name)}), '[]')` : `r.${identifier(name)}`} as c${n}, `)
    return `select ${columns.join('')}${isToMany ? 'count(*) > 0' : 'true'} as found from (${rows}) r`
  }
  if (!isToMany) return `select row_to_json(r.*) as value, true as found from (${rows}) r`
  return `select coalesce(json_agg(r.*), '[]') as value, count(*) > 0 as found from (${rows}) r`
}

interface Output {
  name: string
  sql: string
  isAggregate: boolean
}

function outputsOf(field: PlannedField, table: string, joined: readonly Joined[], isGrouped: boolean, parameters: Parameters): Output[] {
  switch (field.kind) {
    case 'value':
      return [{ name: field.name, sql: valueSql(field, table, parameters), isAggregate: field.aggregate !== undefined }]
    case 'embedded': {
      const { relationship } = field.embedding
      const value = `${joinOf(joined, field.embedding).table}.value`
      // JSON of type `json` can't be compared, and so not grouped.
      const sql = isGrouped ? `${value}::jsonb` : value
      return [{ name: field.name, sql: relationship.isToMany ? `coalesce(${sql}, '[]')` : sql, isAggregate: false }]
    }
    case 'spread': {
      const { table: join, embedding } = joinOf(joined, field.embedding)
      const isJson = isGrouped && embedding.relationship.isToMany
      return spreadNames(embedding.plan).map((name, n) => ({ name, sql: `${join}.c${n}${isJson ? '::jsonb' : ''}`, isAggregate: false }))
    }
  }
}

/** Names of all columns that a plan's rows have. */
export function spreadNames({ fields }: ReadPlan): string[] {
  return fields.flatMap((field) => (field.kind === 'spread' ? spreadNames(field.embedding.plan) : [field.name]))
}

function valueSql({ path, cast, aggregate, aggregateCast }: PlannedValue, table: string, parameters: Parameters): string {
  const plain = path === undefined ? '*' : pathSql(table, path, parameters)
  const value = cast === undefined ? plain : `${plain}::${cast}`
  const made = aggregate === undefined ? value : `${aggregate}(${value})`
  return aggregateCast === undefined ? made : `${made}::${aggregateCast}`
}

function orderSql(order: readonly PlannedOrder[], table: string, parameters: Parameters): string {
  if (order.length === 0) return ''
  const terms = order.map(({ path, direction, nulls, by }) => {
    let value = pathSql(table, path, parameters)
    if (by !== undefined) {
      const other = parameters.table()
      const equal = by.relationship.pairs.map(([near, far]) => `${other}.${identifier(far)} = ${table}.${identifier(near)}`).join(' and ')
      value = `(select ${pathSql(other, path, parameters)} from ${identifier(by.relation.name)} ${other} where ${equal} limit 1)`
    }
    return `${value} ${direction}${nulls === undefined ? '' : ` nulls ${nulls}`}`
  })
  return ` order by ${terms.join(', ')}`
}
