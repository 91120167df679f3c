// Checks that every message in the tables of docs/operate/incidents.md is one that a source writes, so that an operator who
// searches the page for a message finds it.
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import ts from 'typescript'
import { parts, sourcesOf } from '#scripts/messages/list-messages.ts'
import { textsOf, written, type Scope } from '#scripts/messages/text.ts'

const page = 'docs/operate/incidents.md'
/** With fewer messages, the test does not read the tables as they are written. */
const minMessages = 18

/** Quotes that no source contains, with the reason. */
const exceptions: Record<string, string> = {
  'docker compose logs': 'a command',
  'id already in use': "a message of the Docker Engine, which is in the engine's own log",
}

const scope: Scope = { isParameter: () => false, constant: () => undefined }
const texts = new Set(parts.flatMap(sourcesOf).flatMap(({ file, source }) => textsIn(file, source)))

test(`a source writes each message in the tables of ${page}`, async (t) => {
  const quotes = quotesIn(readFileSync(page, 'utf8'))
  t.ok(quotes.length >= minMessages, `the tables have ${quotes.length} messages`)
  const unknown = quotes.filter((quote) => exceptions[quote] === undefined && !isWritten(quote))
  t.same(unknown, [], 'correct these messages, or list them as exceptions with a reason')
  t.same(
    Object.keys(exceptions).filter((quote) => !quotes.includes(quote)),
    [],
    'the page quotes every exception',
  )
})

test('a value may stand for a placeholder, but a message with other words is unknown', async (t) => {
  t.ok(isWritten('Port N is taken by …'))
  t.ok(isWritten('A container named … exists that does not belong to Tenantry.'))
  t.ok(isWritten('the system user "tenantry" could not be created'))
  t.notOk(isWritten('port N is taken by …'), 'upper and lower case differ')
  t.notOk(isWritten('the system user "tenantry" could not be made'))
  t.notOk(isWritten('its subnet overlaps one that exists'))
})

/** Returns the texts in backticks of several words, from the first column of the tables whose header is "what you see". */
function quotesIn(text: string): string[] {
  const tables = text.split('\n\n').filter((paragraph) => paragraph.startsWith('| what you see |'))
  return tables.flatMap((table) =>
    table
      .split('\n')
      .slice(2)
      .flatMap((row) => [...(row.split(' | ')[0] ?? '').matchAll(/`([^`]+)`/g)].map(([, quote = '']) => quote))
      .filter((quote) => quote.includes(' ')),
  )
}

/**
 * Whether a text of a source contains the quote. `…` stands for any text, or none. Any word may be what a placeholder of the source is
 * replaced with, but at most half of the words.
 */
function isWritten(quote: string): boolean {
  const words = quote.split(' ')
  const patterns = words.map((word) => (word === '…' ? '.*' : `(?:${RegExp.escape(word)}|"?\\{\\w+\\}"?)`))
  const pattern = new RegExp(patterns.join(' ').replaceAll(' .*', '(?: .*)?'), 's')
  return [...texts].some((text) => {
    const found = pattern.exec(text)?.[0]
    return found !== undefined && words.filter((word) => found.includes(word)).length * 2 >= words.length
  })
}

/** Returns the strings of a source, with `{name}` for each placeholder of a template. */
function textsIn(file: string, source: string): string[] {
  const found: string[] = []
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node) || ts.isBinaryExpression(node))
      found.push(...textsOf(node, scope).map(written))
    ts.forEachChild(node, visit)
  }
  visit(ts.createSourceFile(file, source, ts.ScriptTarget.Latest, true))
  return found.filter((text) => text.includes(' '))
}
