// Changes as SQL: one statement that writes, and returns what it wrote. Pure.
import type { Statement } from '../../database/statement.ts'
import { computedFields } from '../plan/plan-computed.ts'
import type { PlannedCondition, ReadPlan } from '../plan/plan.ts'
import type { Column, Relation } from '../registry/catalog.ts'
import type { Format } from '../request/read-accept.ts'
import { bodySql, namingFor, oneRowSql, statementOf } from './response-sql.ts'
import { conditionSql, whereSql } from './condition-sql.ts'
import { retainedRows } from './retained-rows.ts'
import { identifier } from './names.ts'
import { Parameters } from './parameters.ts'
import { freeName, outputsSql, selectSql } from './select-sql.ts'

/** The response of a change, and the limits on the number of changed rows. Beyond them the change is rolled back. */
export interface ChangeResponse {
  /** The plan of the returned rows; undefined when none are returned, and the caller need not be able to read them. */
  read: ReadPlan | undefined
  format: Format
  /** The required number of changed rows. The change is rolled back if it changes another number. */
  exactly: number | undefined
  /** The maximum number of changed rows. The change is rolled back if it changes more. */
  maxChanged: number | undefined
  /** Whether it changes at most one row. When it changes none, the statement returns no row. */
  isOne?: boolean
}

export interface Insert {
  relation: Relation
  columns: readonly Column[]
  /** The values of the columns, when there is only one record. */
  values: readonly (string | null)[] | undefined
  /** JSON of an array of objects; at least one. */
  records: string
  count: number
  /** Whether omitted fields receive their default; otherwise null. */
  withDefaults: boolean
  conflict: { columns: readonly string[]; merges: boolean } | undefined
  /** Conditions that records must satisfy. Others are not written. */
  where: readonly PlannedCondition[]
}

export interface Update {
  columns: readonly Column[]
  /** JSON of an object whose keys are the columns. */
  record: string
  /** The values of the columns. */
  values: readonly (string | null)[] | undefined
  /** Whether omitted fields receive their default; otherwise null. */
  withDefaults: boolean
}

/** The reasons for which `refuse_change` undoes a change. */
export const rejections = { exactly: 'not exactly', maxChanged: 'more than' } as const

export function insertStatement(
  { relation, columns, values, records, count, withDefaults, conflict, where }: Insert,
  response: ChangeResponse,
): Statement {
  const parameters = new Parameters()
  const list = columns.map(({ name }) => identifier(name)).join(', ')
  const table = identifier(relation.table)
  const source =
    columns.length === 0
      ? `insert into ${table} as c ${defaultRows(relation, count)}`
      : values !== undefined && !withDefaults && where.length === 0
        ? `insert into ${table} as c (${list}) values (${values.map((value) => parameters.add(value)).join(', ')})`
        : `insert into ${table} as c (${list}) select ${columns.map(({ name }) => `x.${identifier(name)}`).join(', ')}` +
          ` from ${rowsOf(columns, parameters.add(records), withDefaults)}${conditionsOf(where, 'x', parameters)}`
  return changeStatement(
    relation,
    `${source}${conflictSql(columns, conflict)}`,
    response,
    parameters,
    conflict?.merges === true,
  )
}

/** Returns as many rows of only defaults as there are records. */
function defaultRows({ columns }: Relation, count: number): string {
  const [first] = columns.keys()
  if (first === undefined) return 'default values'
  return `(${identifier(first)}) values ${Array.from({ length: count }, () => '(default)').join(', ')}`
}

function rowsOf(columns: readonly Column[], body: string, withDefaults: boolean): string {
  return withDefaults ? filledRows(columns, body) : recordsSql(columns, `json_to_recordset(${body}::json)`)
}

/** Returns the records of a body as a table `x`. Values of domains are made by the functions of their casts. */
function recordsSql(columns: readonly Column[], records: string): string {
  const list = columns
    .map(
      ({ name, type, representation }) =>
        `${identifier(name)} ${representation?.fromJson === undefined ? type : 'json'}`,
    )
    .join(', ')
  if (columns.every(({ representation }) => representation?.fromJson === undefined)) return `${records} as x(${list})`
  const values = columns.map(({ name, representation }) => {
    const value = `e.${identifier(name)}`
    const fromJson = representation?.fromJson
    return `${fromJson === undefined ? value : `${identifier(fromJson)}(${value})`} as ${identifier(name)}`
  })
  return `lateral (select ${values.join(', ')} from ${records} as e(${list})) x`
}

/** Returns each record merged into the defaults. */
function filledRows(columns: readonly Column[], body: string): string {
  return (
    `(select ${defaultsOf(columns)} || e as filled from jsonb_array_elements(${body}::jsonb) e) f,` +
    ` ${recordsSql(columns, 'jsonb_to_record(f.filled)')}`
  )
}

/** Returns SQL of an object with the columns' defaults. */
function defaultsOf(columns: readonly Column[]): string {
  const defaults = columns.filter((column) => column.default !== undefined)
  if (defaults.length === 0) return "'{}'::jsonb"
  return defaults
    .map((column) => `jsonb_build_object(${quoted(column.name)}, ${column.default ?? 'null'})`)
    .join(' || ')
}

function quoted(name: string): string {
  return `'${name.replaceAll("'", "''")}'`
}

function conflictSql(columns: readonly Column[], conflict: Insert['conflict']): string {
  if (conflict === undefined) return ''
  const target = ` (${conflict.columns.map(identifier).join(', ')})`
  if (!conflict.merges) return ` on conflict${target} do nothing`
  const changed = columns.filter(({ name }) => !conflict.columns.includes(name))
  // With nothing to change, the existing row is already the requested one.
  const set = (changed.length === 0 ? conflict.columns : changed.map(({ name }) => name)).map(
    (name) => `${identifier(name)} = excluded.${identifier(name)}`,
  )
  return ` on conflict${target} do update set ${set.join(', ')} where set_config('${merged}', (${mergedSql} + 1)::text, true) is not null`
}

/**
 * The setting that counts the existing rows of the transaction, because views and partitioned tables cannot distinguish
 * them from new ones.
 */
const merged = 'rest.merged'
const mergedSql = `coalesce(nullif(current_setting('${merged}', true), ''), '0')::integer`

export function updateStatement(
  relation: Relation,
  { columns, record, values, withDefaults }: Update,
  where: readonly PlannedCondition[],
  response: ChangeResponse,
): Statement {
  const parameters = new Parameters()
  if (values !== undefined) {
    const set = columns.map(({ name }, n) => `${identifier(name)} = ${parameters.add(values[n] ?? null)}`).join(', ')
    const change = `update ${identifier(relation.table)} as c set ${set}${conditionsOf(where, 'c', parameters)}`
    return filtered(where, changeStatement(relation, change, response, parameters))
  }
  const body = parameters.add(record)
  const set = columns.map(({ name }) => `${identifier(name)} = x.${identifier(name)}`).join(', ')
  const source = withDefaults
    ? `jsonb_to_record(${defaultsOf(columns)} || ${body}::jsonb)`
    : `json_to_record(${body}::json)`
  const change =
    `update ${identifier(relation.table)} as c set ${set}` +
    ` from ${recordsSql(columns, source)}${conditionsOf(where, 'c', parameters)}`
  return filtered(where, changeStatement(relation, change, response, parameters))
}

export function deleteStatement(
  relation: Relation,
  where: readonly PlannedCondition[],
  response: ChangeResponse,
): Statement {
  const parameters = new Parameters()
  const change = `delete from ${identifier(relation.table)} as c${conditionsOf(where, 'c', parameters)}`
  return filtered(where, changeStatement(relation, change, response, parameters))
}

/** Returns the statement as foreign when its conditions run functions of the tenant that may do anything. */
function filtered(where: readonly PlannedCondition[], statement: Statement): Statement {
  const computed = computedFields({ fields: [], where, order: [] })
  return computed.some(({ computed }) => computed?.isReading === false) ? { ...statement, isForeign: true } : statement
}

function conditionsOf(where: readonly PlannedCondition[], table: string, parameters: Parameters): string {
  const has = () => {
    throw new Error('A change has no embeddings.')
  }
  return whereSql(where.map((condition) => conditionSql(condition, { table, parameters, has })))
}

/**
 * Returns a statement with the columns `body`; `n`, the number of its rows; `changed`, the number of changed rows; and
 * `made`, the number of new rows, when an insert may change others.
 */
function changeStatement(
  relation: Relation,
  change: string,
  { read, format, exactly, maxChanged, isOne = false }: ChangeResponse,
  parameters: Parameters,
  reportsNew = false,
): Statement {
  const outputs = isOne && read !== undefined && !reportsNew ? outputsSql(read, 'c', parameters) : undefined
  if (outputs !== undefined) {
    const body = `(select ${oneRowSql('r')} from (select ${outputs}) r) as body`
    return statementOf(read, `${change} returning ${body}, 1::bigint as n, 1::bigint as changed`, parameters)
  }
  // The caller must be able to read the returned rows, but need not when none are returned.
  const retained = read === undefined ? undefined : retainedRows(read, 'c')
  const returned =
    retained === undefined
      ? '1 as one'
      : [...[...relation.columns.keys()].map((name) => `c.${identifier(name)}`), ...retained.columns].join(', ')
  const changed = freeName('changed', read)
  const changedCount = `(select count(*) from ${changed})`
  // The case expression ensures that the change runs first.
  const made = `case when ${changedCount} > 0 then ${changedCount} - ${mergedSql} else 0 end`
  const counts = `${changedCount} as changed${reportsNew ? `, ${made} as made` : ''}`
  const response =
    read === undefined || retained === undefined
      ? `select '' as body, 0 as n, ${counts}`
      : `select ${bodySql(format)} as body, count(*) as n, ${counts}` +
        ` from (${selectSql(read, retained.source(changed), parameters, namingFor(format))}) r`
  const guards = [
    ...(exactly === undefined
      ? []
      : [
          `case when a.changed <> ${parameters.add(exactly)} then refuse_change('${rejections.exactly}', a.changed) end`,
        ]),
    ...(maxChanged === undefined
      ? []
      : [
          `case when a.changed > ${parameters.add(maxChanged)} then refuse_change('${rejections.maxChanged}', a.changed) end`,
        ]),
  ]
  const guarded =
    guards.length === 0
      ? response
      : `select a.*, ${guards.map((guard, n) => `${guard} as guard${n}`).join(', ')} from (${response}) a`
  return statementOf(read, `with ${changed} as (${change} returning ${returned}) ${guarded}`, parameters)
}
