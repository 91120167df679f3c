// Conditions as SQL. An operand is an untyped parameter, so that Postgres gives it the type of the other side. Pure.
import type { Embedding, PlannedCondition, PlannedPath } from '../plan/plan.ts'
import type { IsWord, Operator, Test } from '../request/read-conditions.ts'
import { afterSql } from './after-sql.ts'
import { identifier } from './names.ts'
import type { Parameters } from './parameters.ts'
import { pathSql } from './path-sql.ts'

interface ConditionScope {
  table: string
  parameters: Parameters
  /** Returns SQL that is true when the embedded relation has a row. */
  has(embedding: Embedding): string
}

/** Returns ` where …`, or nothing. */
export function whereSql(conditions: readonly string[]): string {
  return conditions.length === 0 ? '' : ` where ${conditions.join(' and ')}`
}

export function conditionSql(condition: PlannedCondition, scope: ConditionScope): string {
  const text = () => {
    switch (condition.kind) {
      case 'and':
      case 'or':
        return condition.members.map((member) => conditionSql(member, scope)).join(` ${condition.kind} `)
      case 'has':
        return scope.has(condition.embedding)
      case 'own':
        return `${scope.table}.${identifier(condition.column.name)}::text = (select nullif(current_setting('app.user_id', true), ''))`
      case 'after':
        return afterSql(condition.terms, condition.values, scope.table, scope.parameters)
      case 'test':
        return testSql(condition.path, condition.test, scope)
    }
  }
  if (condition.negated) return `not (${text()})`
  return condition.kind === 'and' || condition.kind === 'or' ? `(${text()})` : text()
}

const infix: Record<Exclude<Operator, 'in' | 'is' | 'fts' | 'plfts' | 'phfts' | 'wfts'>, string> = {
  eq: '=',
  neq: '<>',
  gt: '>',
  gte: '>=',
  lt: '<',
  lte: '<=',
  like: 'like',
  ilike: 'ilike',
  match: '~',
  imatch: '~*',
  isdistinct: 'is distinct from',
  cs: '@>',
  cd: '<@',
  ov: '&&',
  sl: '<<',
  sr: '>>',
  nxr: '&<',
  nxl: '&>',
  adj: '-|-',
}
const searches = {
  fts: 'to_tsquery',
  plfts: 'plainto_tsquery',
  phfts: 'phraseto_tsquery',
  wfts: 'websearch_to_tsquery',
} as const
const isSql: Record<IsWord, string> = {
  null: 'null',
  not_null: 'not null',
  true: 'true',
  false: 'false',
  unknown: 'unknown',
}
/** The operators whose operand is a value of the column's domain. */
const converting: readonly Operator[] = ['eq', 'neq', 'gt', 'gte', 'lt', 'lte', 'isdistinct']

/** Returns the text as a value of a domain, by the function of the domain's cast. */
function converted(fromText: string, text: string): string {
  return `${identifier(fromText)}(${text}::text)`
}

function testSql(path: PlannedPath, test: Test, { table, parameters }: ConditionScope): string {
  // This precedes the path, because an unused parameter is an error.
  if (test.operator === 'in' && test.values.length === 0) return 'false'
  const left = pathSql(table, path, parameters)
  const type = typeOf(path)
  const fromText = path.steps.length === 0 ? path.column.representation?.fromText : undefined
  switch (test.operator) {
    case 'is':
      return `${left} is ${isSql[test.word]}`
    case 'in':
      if (fromText !== undefined)
        return `${left} in (${test.values.map((value) => converted(fromText, parameters.add(value))).join(', ')})`
      // One parameter, however many values there are, except for lists, because Postgres has no lists of lists.
      if (type.endsWith('[]')) return `${left} in (${test.values.map((value) => parameters.add(value)).join(', ')})`
      return `${left} = any(${parameters.add(arrayLiteral(test.values))})`
    case 'fts':
    case 'plfts':
    case 'phfts':
    case 'wfts': {
      const language = test.language === undefined ? '' : `${parameters.add(test.language)}::text::regconfig, `
      const document = type === 'tsvector' ? left : `to_tsvector(${language}${left})`
      return `${document} @@ ${searches[test.operator]}(${language}${parameters.add(test.value)})`
    }
  }
  const { operator } = test
  const value = operator === 'like' || operator === 'ilike' ? test.value.replaceAll('*', '%') : test.value
  const plain = parameters.add(value)
  const converts = fromText !== undefined && converting.includes(operator) && test.quantifier === undefined
  const operand = converts ? converted(fromText, plain) : plain
  return `${left} ${infix[operator]} ${test.quantifier === undefined ? operand : `${test.quantifier}(${operand})`}`
}

function typeOf({ column, steps }: PlannedPath): string {
  const last = steps.at(-1)
  return last === undefined ? column.base : last.arrow === '->>' ? 'text' : 'jsonb'
}

/** Returns an array literal such as `{"a","b"}`, whatever the elements contain. */
export function arrayLiteral(values: readonly string[]): string {
  return `{${values.map((value) => `"${value.replaceAll(/["\\]/g, '\\$&')}"`).join(',')}}`
}
