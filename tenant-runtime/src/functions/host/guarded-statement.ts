// A function's statement before it goes to Postgres: one query or change and nothing else, without what would let it leave
// its caller's context; made to answer with rows that are JSON. Pure. What it guards stands in docs/functions.md.
import { reservedCollections, systemCollections, counterTables } from '../../rest/registry/system-collections.ts'
import { CallError } from './call-error.ts'
import { readTokens, type Token } from './sql-tokens.ts'

interface GuardedStatement {
  text: string
  /** `rows`: each row is a JSON object. `count`: the only row is the number of records that were changed. */
  gives: 'rows' | 'count'
}

const changes = ['insert', 'update', 'delete', 'merge']
const verbs = ['select', 'values', ...changes]

/** By these a statement could become another caller, run a text that nobody has looked at, or read what others are doing. */
const denied = [
  /^set_config$/,
  /^pg_settings$/,
  /^(?:query|cursor|table|schema|database)_to_xml/,
  /^ts_stat$/,
  /^ts_rewrite$/,
  // Of Postgres' usual extensions.
  /^dblink/,
  /^crosstab/,
  /^connectby$/,
  /^xpath_table$/,
  // They reach beyond the transaction: sessions and their statements, locks, large objects, other listeners.
  /^pg_stat_(?:activity$|statements|get_activity$|get_backend_)/,
  /^pg_(?:cancel|terminate)_backend$/,
  /^pg_(?:try_)?advisory_/,
  /^pg_notify$/,
  /^pg_logical_emit_message$/,
  /^pg_export_snapshot$/,
  /^lo_(?:creat|open$|close$|get$|put$|from_bytea$|import$|export$|unlink$|truncate|lseek|tell)/,
  /^lo(?:read|write)$/,
]

/** What the answer is called within the statement. */
const response = 'tenantry_answer'

/**
 * @param asCaller a statement in the caller's context, not one of a function that has the service role
 * @throws CallError STATEMENT_REFUSED
 */
export function guardStatement(sql: string, asCaller: boolean): GuardedStatement {
  const tokens = withoutEnd(tokensOf(sql))
  const [first] = tokens
  if (first?.kind !== 'word' || ![...verbs, 'with'].includes(first.text)) {
    throw rejected(`it must begin with ${[...verbs, 'with'].map((verb) => verb.toUpperCase()).join(', ')}`)
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
  if (main === undefined) throw rejected('its WITH is followed by no query')
  // Behind the last word: what follows it may be a comment without an end.
  const body = sql.slice(main.begin, tokens.at(-1)?.end)
  const before = at === 0 ? 'with ' : `${sql.slice(first.begin, main.begin)}, `
  const isChange = changes.includes(main.text)
  if (
    isChange &&
    !tokens.slice(at).some(({ kind, text, depth }) => kind === 'word' && depth === 0 && text === 'returning')
  ) {
    return {
      text: `${before}${response} as (${body} returning 1) select count(*)::text from ${response}`,
      gives: 'count',
    }
  }
  return {
    text: `${before}${response} as (${body}) select row_to_json(${response})::text from ${response}`,
    gives: 'rows',
  }
}

function tokensOf(sql: string): Token[] {
  try {
    return readTokens(sql)
  } catch (error) {
    if (error instanceof SyntaxError) throw new CallError('STATEMENT_REFUSED', error.message)
    throw error
  }
}

/** Without the semicolon at its end. */
function withoutEnd(tokens: Token[]): Token[] {
  const end = tokens.findIndex(({ kind, text }) => kind === 'sign' && text === ';')
  if (end < 0) return tokens
  if (tokens.slice(end).some(({ text }) => text !== ';')) throw rejected('it is more than one statement')
  return tokens.slice(0, end)
}

function rejectNames(tokens: readonly Token[]): void {
  for (const { kind, text } of tokens) {
    if (kind !== 'word' && kind !== 'name') continue
    if (denied.some((pattern) => pattern.test(text.toLowerCase())))
      throw rejected(
        `it names ${JSON.stringify(text.slice(0, 63))}, which a function can use only with "role": "service_role"`,
      )
  }
}

/**
 * The runtime writes its own tables in its callers' contexts, by statements that it knows, so their policies let callers write,
 * and some have none. Those that are shown as collections can be read.
 */
function rejectOwnTables(tokens: readonly Token[]): void {
  const isChange = tokens.some(({ kind, text }) => kind === 'word' && changes.includes(text))
  for (const { kind, text } of tokens) {
    if (kind !== 'word' && kind !== 'name') continue
    const name = text.toLowerCase()
    const isOwn = reservedCollections.has(name) && name !== 'rpc'
    if (isOwn && (isChange || !systemCollections.has(name)))
      throw rejected(
        `it names ${JSON.stringify(name)}, which is the runtime's own; ` +
          'only what is shown as a collection can be read, by a statement that changes nothing',
      )
  }
}

/** The word that must stand between each of them and what is changed. `update` also follows FOR and ON CONFLICT DO, then by no table. */
const targets = new Map([
  ['insert', 'into'],
  ['delete', 'from'],
  ['merge', 'into'],
  ['update', ''],
])

/** The service role does what it likes with its tenant's records. What the tenant has used is not its to say. */
function rejectCounterChanges(tokens: readonly Token[]): void {
  for (const [at, { kind, text }] of tokens.entries()) {
    const between = kind === 'word' ? targets.get(text) : undefined
    if (between === undefined) continue
    const name = tableAt(tokens, at + 1, between)
    if (name !== undefined && counterTables.has(name))
      throw rejected(`it changes ${JSON.stringify(name)}, where the runtime keeps what was stored and used`)
  }
}

/** The last part of a table's name, in lower case. */
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

function rejected(why: string): CallError {
  return new CallError('STATEMENT_REFUSED', `the statement is refused: ${why}`)
}
