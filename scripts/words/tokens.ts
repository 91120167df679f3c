// Splits a source file into identifiers, comments and texts. The scanner alone is enough, and several times as fast as a parser.
import ts from 'typescript'

/** A part of a file that words are searched in. */
export interface Token {
  readonly kind: 'identifier' | 'comment' | 'text'
  readonly text: string
  /** Counted from 1. */
  readonly line: number
}

/** Returns the tokens of a file by the ending of its name: TypeScript and JavaScript, SQL, Prisma's schema, shell scripts. */
export function tokensOf(file: string, source: string): Token[] {
  if (/\.[cm]?[jt]s$/.test(file)) return scriptTokens(source)
  if (file.endsWith('.sql')) return simpleTokens(source, /--[^\n]*|\/\*[^]*?\*\//y)
  if (file.endsWith('.prisma')) return simpleTokens(source, /\/\/[^\n]*/y)
  return simpleTokens(source, /(?<=^|\s)#[^\n]*/my)
}

const { SyntaxKind } = ts

/** Tokens that a value ends with, so that a slash after them divides. */
const endsOfValues = new Set([
  SyntaxKind.Identifier,
  SyntaxKind.PrivateIdentifier,
  SyntaxKind.NumericLiteral,
  SyntaxKind.BigIntLiteral,
  SyntaxKind.StringLiteral,
  SyntaxKind.NoSubstitutionTemplateLiteral,
  SyntaxKind.TemplateTail,
  SyntaxKind.RegularExpressionLiteral,
  SyntaxKind.CloseParenToken,
  SyntaxKind.CloseBracketToken,
  SyntaxKind.CloseBraceToken,
  SyntaxKind.ThisKeyword,
  SyntaxKind.SuperKeyword,
  SyntaxKind.TrueKeyword,
  SyntaxKind.FalseKeyword,
  SyntaxKind.NullKeyword,
  SyntaxKind.PlusPlusToken,
  SyntaxKind.MinusMinusToken,
])

function scriptTokens(source: string): Token[] {
  const scanner = ts.createScanner(ts.ScriptTarget.Latest, false, ts.LanguageVariant.Standard, source)
  const found: { kind: Token['kind']; text: string; start: number }[] = []
  /** For each open brace, whether it is the `${` of a template. */
  const braces: boolean[] = []
  let previous = SyntaxKind.Unknown
  for (let kind = scanner.scan(); kind !== SyntaxKind.EndOfFileToken; kind = scanner.scan()) {
    if (kind === SyntaxKind.SlashToken || kind === SyntaxKind.SlashEqualsToken) {
      if (!endsOfValues.has(previous)) kind = scanner.reScanSlashToken()
    } else if (kind === SyntaxKind.OpenBraceToken) braces.push(false)
    else if (kind === SyntaxKind.CloseBraceToken && braces.pop() === true) {
      kind = scanner.reScanTemplateToken(false)
    }
    if (kind === SyntaxKind.TemplateHead || kind === SyntaxKind.TemplateMiddle) braces.push(true)

    const start = scanner.getTokenStart()
    const type = kindOf(kind)
    if (type !== undefined)
      found.push({ kind: type, text: type === 'text' ? scanner.getTokenValue() : scanner.getTokenText(), start })
    if (!isTrivia(kind)) previous = kind
  }
  return withLines(source, found)
}

function kindOf(kind: ts.SyntaxKind): Token['kind'] | undefined {
  switch (kind) {
    case SyntaxKind.Identifier:
    case SyntaxKind.PrivateIdentifier:
      return 'identifier'
    case SyntaxKind.SingleLineCommentTrivia:
    case SyntaxKind.MultiLineCommentTrivia:
      return 'comment'
    case SyntaxKind.StringLiteral:
    case SyntaxKind.NoSubstitutionTemplateLiteral:
    case SyntaxKind.TemplateHead:
    case SyntaxKind.TemplateMiddle:
    case SyntaxKind.TemplateTail:
      return 'text'
    default:
      return undefined
  }
}

function isTrivia(kind: ts.SyntaxKind): boolean {
  return kind >= SyntaxKind.FirstTriviaToken && kind <= SyntaxKind.LastTriviaToken
}

/** Languages whose comments and quotes are enough to tell their tokens apart. */
function simpleTokens(source: string, comment: RegExp): Token[] {
  const found: { kind: Token['kind']; text: string; start: number }[] = []
  const others = /(['"])((?:(?!\1)[^\\]|\\.)*)\1|[A-Za-z_]\w*|[^]/y
  for (let at = 0; at < source.length;) {
    comment.lastIndex = at
    others.lastIndex = at
    const match = comment.exec(source)
    const other = match === null ? others.exec(source) : null
    if (match !== null) found.push({ kind: 'comment', text: match[0], start: at })
    else if (other?.[2] !== undefined) found.push({ kind: 'text', text: other[2], start: at })
    else if (other !== null && /^\w/.test(other[0])) found.push({ kind: 'identifier', text: other[0], start: at })
    at += Math.max(1, (match ?? other)?.[0].length ?? 1)
  }
  return withLines(source, found)
}

/** Adds lines, and makes one comment of those on successive lines, so that a phrase is found across the end of a line. */
function withLines(source: string, found: { kind: Token['kind']; text: string; start: number }[]): Token[] {
  const tokens: { kind: Token['kind']; text: string; line: number }[] = []
  let line = 1
  let at = 0
  let endOfComment = -1
  for (const { kind, text, start } of found) {
    for (; at < start; at++) if (source.charCodeAt(at) === 10) line++
    const last = tokens.at(-1)
    if (kind === 'comment' && last?.kind === 'comment' && /^[ \t]*\r?\n[ \t]*$/.test(source.slice(endOfComment, start)))
      last.text += `\n${text}`
    else tokens.push({ kind, text, line })
    if (kind === 'comment') endOfComment = start + text.length
  }
  return tokens
}
