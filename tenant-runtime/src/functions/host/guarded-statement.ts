// Checks a function's statement before Postgres runs it, and makes it return rows of JSON. The statement must be one query or
// change, and must not leave its caller's context. docs/functions.md has the rules. Pure.
import { reservedCollections, systemCollections, counterTables } from '../../rest/registry/system-collections.ts'
import { CallError } from './call-error.ts'
import { readTokens, type Token } from './sql-tokens.ts'

interface GuardedStatement {
  text: string
  /** `rows`: each row is a JSON object. `count`: the only row is the number of records that were changed. */
  returns: 'rows' | 'count'
}

const changes = ['insert', 'update', 'delete', 'merge']
const verbs = ['select', 'values', ...changes]

/** Functions and views with which a statement could act as another caller, run unchecked SQL, or read others' activity. */
const denied = [
  /^set_config$/,
  /^pg_settings$/,
  /^(?:query|cursor|table|schema|database)_to_xml/,
  /^ts_stat$/,
  /^ts_rewrite$/,
  // Functions of Postgres' usual extensions.
  /^dblink/,
  /^crosstab/,
  /^connectby$/,
  /^xpath_table$/,
  // Functions with effects outside of the transaction: sessions, locks, large objects, notifications.
  /^pg_stat_(?:activity$|statements|get_activity$|get_backend_)/,
  /^pg_(?:cancel|terminate)_backend$/,
  /^pg_(?:try_)?advisory_/,
  /^pg_notify$/,
  /^pg_logical_emit_message$/,
  /^pg_export_snapshot$/,
  /^lo_(?:creat|open$|close$|get$|put$|from_bytea$|import$|export$|unlink$|truncate|lseek|tell)/,
  /^lo(?:read|write)$/,
]

/** The name of the CTE with the statement's result. */
const result = 'tenantry_result'

/**
 * Checks a statement and makes it return JSON.
 * @param asCaller whether the statement runs in the caller's context, not as the service role
 * @throws CallError STATEMENT_REJECTED
 */
export function guardStatement(sql: string, asCaller: boolean): GuardedStatement {
  const tokens = withoutEnd(tokensOf(sql))
  const [first] = tokens
  if (first?.kind !== 'word' || ![...verbs, 'with'].includes(first.text)) {
    throw rejected(`It must begin with one of ${[...verbs, 'with'].map((verb) => verb.toUpperCase()).join(', ')}.`)
  }
  if (asCaller) {
    rejectNames(tokens)
    rejectOwnTables(tokens)
  } else rejectCounterChanges(tokens)
  const at =
    first.text === 'with'
      ? tokens.findIndex(({ kind, text, depth }) => kind === 'word' && depth === 0 && verbs.includes(text))
      : 0
  const main = tokens[at]
  if (main === undefined) throw rejected('Its WITH is not followed by a query.')
  // Ends after the last token, because a comment without an end may follow it.
  const body = sql.slice(main.begin, tokens.at(-1)?.end)
  const before = at === 0 ? 'with ' : `${sql.slice(first.begin, main.begin)}, `
  const isChange = changes.includes(main.text)
  if (
    isChange &&
    !tokens.slice(at).some(({ kind, text, depth }) => kind === 'word' && depth === 0 && text === 'returning')
  ) {
    return {
      text: `${before}${result} as (${body} returning 1) select count(*)::text from ${result}`,
      returns: 'count',
    }
  }
  return {
    text: `${before}${result} as (${body}) select row_to_json(${result})::text from ${result}`,
    returns: 'rows',
  }
}

function tokensOf(sql: string): Token[] {
  try {
    return readTokens(sql)
  } catch (error) {
    if (error instanceof SyntaxError) throw new CallError('STATEMENT_REJECTED', error.message)
    throw error
  }
}

/** Removes the semicolons at the statement's end. @throws CallError if another statement follows */
function withoutEnd(tokens: Token[]): Token[] {
  const end = tokens.findIndex(({ kind, text }) => kind === 'sign' && text === ';')
  if (end < 0) return tokens
  if (tokens.slice(end).some(({ text }) => text !== ';')) throw rejected('It has more than one statement.')
  return tokens.slice(0, end)
}

function rejectNames(tokens: readonly Token[]): void {
  for (const { kind, text } of tokens) {
    if (kind !== 'word' && kind !== 'name') continue
    if (denied.some((pattern) => pattern.test(text.toLowerCase())))
      throw rejected(
        `It uses ${JSON.stringify(text.slice(0, 63))}, which requires a function with "role": "service_role".`,
      )
  }
}

/**
 * Rejects statements that use the runtime's tables. The runtime writes them in its callers' contexts, so their policies, if
 * they have any, allow callers to write. Statements may read the tables that are collections too.
 */
function rejectOwnTables(tokens: readonly Token[]): void {
  const isChange = tokens.some(({ kind, text }) => kind === 'word' && changes.includes(text))
  for (const { kind, text } of tokens) {
    if (kind !== 'word' && kind !== 'name') continue
    const name = text.toLowerCase()
    const isOwn = reservedCollections.has(name) && name !== 'rpc'
    if (isOwn && (isChange || !systemCollections.has(name)))
      throw rejected(
        `It uses the runtime's table ${JSON.stringify(name)}. ` +
          "A statement that changes nothing can read those of the runtime's tables that are collections.",
      )
  }
}

/** The keyword between each verb and its table. After FOR and ON CONFLICT DO, no table follows `update`. */
const targets = new Map([
  ['insert', 'into'],
  ['delete', 'from'],
  ['merge', 'into'],
  ['update', ''],
])

/** Rejects changes of the tables that count what the tenant uses. The service role may change all other records. */
function rejectCounterChanges(tokens: readonly Token[]): void {
  for (const [at, { kind, text }] of tokens.entries()) {
    const between = kind === 'word' ? targets.get(text) : undefined
    if (between === undefined) continue
    const name = tableAt(tokens, at + 1, between)
    if (name !== undefined && counterTables.has(name))
      throw rejected(`It changes ${JSON.stringify(name)}, where the runtime counts what the tenant stores and uses.`)
  }
}

/** Returns the last part of the table's name at a token, in lower case. */
function tableAt(tokens: readonly Token[], begin: number, between: string): string | undefined {
  let at = begin
  const skip = (text: string, kind: Token['kind']) => {
    if (tokens[at]?.kind !== kind || tokens[at]?.text !== text) return false
    at++
    return true
  }
  if (between !== '' && !skip(between, 'word')) return undefined
  skip('only', 'word')
  skip('(', 'sign')
  let name: string | undefined
  do name = tokens[at++]?.text.toLowerCase()
  while (skip('.', 'sign'))
  return name
}

function rejected(reason: string): CallError {
  return new CallError('STATEMENT_REJECTED', `The statement was rejected. ${reason}`)
}
