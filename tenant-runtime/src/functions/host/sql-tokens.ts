// Divides SQL into tokens as Postgres' scanner does. It rejects SQL that Postgres could divide differently, so that no word
// for Postgres is taken for a part of a constant here. Pure.

export interface Token {
  /** `name` is an identifier in quotes; `word` one without, or a keyword. */
  kind: 'word' | 'name' | 'string' | 'number' | 'parameter' | 'sign'
  /** A word in lower case, a name without its quotes, any other token as it is written. */
  text: string
  begin: number
  end: number
  /** Number of open brackets around the token. */
  depth: number
}

const wordBegin = /[A-Za-z_\u0080-\uffff]/
const word = /[A-Za-z_\u0080-\uffff][A-Za-z0-9_$\u0080-\uffff]*/y
const number =
  /(?:0[xX][0-9a-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+|(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][+-]?[0-9][0-9_]*)?)/y
const parameter = /\$[0-9]+/y
const dollarQuote = /\$(?:[A-Za-z_\u0080-\uffff][A-Za-z0-9_\u0080-\uffff]*)?\$/y
const blank = /[ \t\n\r\f\v]/

/** Divides a statement into tokens. @throws SyntaxError with the reason why it is rejected */
export function readTokens(sql: string): Token[] {
  if (sql.includes('\0')) throw new SyntaxError('The statement contains NUL.')
  const tokens: Token[] = []
  let at = 0
  let depth = 0
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at
    return pattern.exec(sql)?.[0]
  }
  const add = (kind: Token['kind'], end: number, text = sql.slice(at, end)) => {
    // Postgres joins constants on consecutive lines, and scans the second by the rules of the first.
    if (kind === 'string' && tokens.at(-1)?.kind === 'string')
      throw new SyntaxError('The statement has two text constants with nothing between them.')
    tokens.push({ kind, text, begin: at, end, depth })
    at = end
  }
  while (at < sql.length) {
    const first = sql.charAt(at)
    const two = sql.slice(at, at + 2)
    if (blank.test(first)) at++
    else if (two === '--') at = endOfLine(sql, at)
    else if (two === '/*') at = endOfComment(sql, at)
    else if (first === "'") add('string', endOfString(sql, at))
    else if (first === '"') {
      const end = endOfName(sql, at)
      add('name', end, sql.slice(at + 1, end - 1).replaceAll('""', '"'))
    } else if (/^[eE]'/.test(two)) add('string', endOfEscaped(sql, at + 1))
    else if (/^[bBxXnN]'/.test(two)) add('string', endOfString(sql, at + 1))
    else if (/^[uU]&["']/.test(sql.slice(at, at + 3)))
      throw new SyntaxError('The statement has U&\'…\' or U&"…". Write the characters themselves.')
    else if (wordBegin.test(first)) {
      const found = match(word) ?? first
      add('word', at + found.length, found.toLowerCase())
    } else if (first === '$') {
      const found = match(parameter)
      const quote = match(dollarQuote)
      if (found !== undefined) add('parameter', withoutTail(sql, at + found.length))
      else if (quote !== undefined) add('string', endOfDollar(sql, at, quote))
      else throw new SyntaxError('The statement has a $ that begins neither a parameter nor a constant.')
    } else if (/[0-9]/.test(first) || /^\.[0-9]/.test(two))
      add('number', withoutTail(sql, at + (match(number) ?? first).length))
    else {
      if (first === ')') depth--
      if (depth < 0) throw new SyntaxError('The statement closes a bracket that it has not opened.')
      add('sign', at + 1)
      if (first === '(') depth++
    }
  }
  if (depth > 0) throw new SyntaxError('The statement leaves a bracket open.')
  return tokens
}

/** Checks that no letters follow a number or a parameter, which Postgres rejects as well. */
function withoutTail(sql: string, end: number): number {
  if (/[A-Za-z0-9_$\u0080-\uffff]/.test(sql.charAt(end)))
    throw new SyntaxError('The statement has a number or a parameter that runs into a word.')
  return end
}

function endOfLine(sql: string, begin: number): number {
  const length = sql.slice(begin).search(/[\n\r]/)
  return length < 0 ? sql.length : begin + length
}

/** Returns the end of a comment, which may contain comments. */
function endOfComment(sql: string, begin: number): number {
  let open = 1
  for (let at = begin + 2; at < sql.length; at++) {
    const two = sql.slice(at, at + 2)
    if (two === '/*') {
      open++
      at++
    } else if (two === '*/') {
      open--
      at++
      if (open === 0) return at + 1
    }
  }
  throw new SyntaxError('The statement leaves a comment open.')
}

function endOfString(sql: string, quote: number): number {
  return endOfQuoted(sql, quote, "'", 'a text')
}

function endOfName(sql: string, quote: number): number {
  return endOfQuoted(sql, quote, '"', 'a name')
}

function endOfQuoted(sql: string, begin: number, quote: string, what: string): number {
  for (let at = begin + 1; ; at += 2) {
    at = sql.indexOf(quote, at)
    if (at < 0) throw new SyntaxError(`The statement leaves ${what} open.`)
    if (sql.charAt(at + 1) !== quote) return at + 1
  }
}

/** Returns the end of E'…', in which a backslash escapes the next character. */
function endOfEscaped(sql: string, begin: number): number {
  for (let at = begin + 1; at < sql.length; at++) {
    const one = sql.charAt(at)
    if (one === '\\') at++
    else if (one === "'" && sql.charAt(at + 1) === "'") at++
    else if (one === "'") return at + 1
  }
  throw new SyntaxError('The statement leaves a text open.')
}

function endOfDollar(sql: string, begin: number, quote: string): number {
  const end = sql.indexOf(quote, begin + quote.length)
  if (end < 0) throw new SyntaxError('The statement leaves a text open.')
  return end + quote.length
}
