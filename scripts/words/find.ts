// Finds the listed words in paths and sources.
import { tokensOf } from './tokens.ts'
import type { Exception, Kind, Word } from './word.ts'

/** A use of a listed word. */
export interface Finding {
  readonly file: string
  readonly line: number
  readonly kind: Kind
  readonly word: string
  /** The identifier or path as written; of prose, the words that were found. */
  readonly found: string
  readonly write: string
}

/** A search over files that are added one by one. */
export interface Finder {
  addFile: (file: string, source: string) => void
  /** Uses that no exception covers, in the order of the files. */
  findings: () => Finding[]
  /** Exceptions that matched nothing. */
  unusedExceptions: () => Exception[]
}

interface Pattern extends Pick<Word, 'word' | 'write'> {
  pattern: RegExp
}

/** Creates a search. With `hasTexts`, strings and templates are searched too. */
export function createFinder(words: readonly Word[], exceptions: readonly Exception[], hasTexts: boolean): Finder {
  const prose = patternsOf(words, ({ prose }) => prose)
  const names = patternsOf(words, ({ name }) => name)
  const paths = patternsOf(words, ({ name, path }) => path ?? name)
  const findings: Finding[] = []
  const unused = new Set(exceptions)
  const seenPaths = new Set<string>()
  const wordsOfName = new Map<string, readonly Pattern[]>()

  return { addFile, findings: () => findings, unusedExceptions: () => [...unused] }

  function addFile(file: string, source: string): void {
    addPath(file)
    const seen = new Set<string>()
    for (const { kind, text, line } of tokensOf(file, source)) {
      if (kind === 'identifier') {
        if (seen.has(text)) continue
        seen.add(text)
        for (const found of inName(text)) add({ ...found, file, line, kind, found: text })
      } else if (kind === 'comment' || (hasTexts && !isImport(text)))
        addProse(file, kind, withoutNames(text, file, kind), line)
    }
  }

  /** Searches the name of a file and those of its folders, each folder once. */
  function addPath(file: string): void {
    const parts = file.split('/')
    for (const [index, part] of parts.entries()) {
      const path = parts.slice(0, index + 1).join('/')
      if (seenPaths.has(path)) continue
      seenPaths.add(path)
      const spaced = spacedName(part.replace(/(?<=.)\.[^]*$/, ''))
      for (const { word, write } of matching(paths, spaced))
        add({ file: path, line: 1, kind: 'path', word, write, found: part })
    }
  }

  function inName(name: string): readonly Pattern[] {
    const known = wordsOfName.get(name)
    if (known !== undefined) return known
    const found = matching(names, spacedName(name))
    wordsOfName.set(name, found)
    return found
  }

  function addProse(file: string, kind: Kind, text: string, line: number): void {
    const spaced = plainText(text)
    for (const { word, write, pattern } of prose) {
      pattern.lastIndex = 0
      for (let match = pattern.exec(spaced); match !== null; match = pattern.exec(spaced)) {
        const lines = spaced.slice(0, match.index + match[0].search(/\w/)).split('\n').length - 1
        add({ file, line: line + lines, kind, word, write, found: match[0].trim().replaceAll(/\s+/g, ' ') })
      }
    }
  }

  /** Blanks the names that exceptions list, as a comment may name them too. */
  function withoutNames(text: string, file: string, kind: Kind): string {
    let rest = text
    for (const exception of exceptions) {
      const { name } = exception
      if (name === undefined || !rest.includes(name) || !appliesTo(exception, file, kind)) continue
      rest = rest.replaceAll(name, ' '.repeat(name.length))
      unused.delete(exception)
    }
    return rest
  }

  function add({ file, line, kind, word, write, found }: Finding): void {
    const covering = exceptions.filter((exception) => covers(exception, { file, line, kind, word, write, found }))
    for (const exception of covering) unused.delete(exception)
    if (covering.length === 0) findings.push({ file, line, kind, word, write, found })
  }
}

function covers(exception: Exception, finding: Finding): boolean {
  return (
    (exception.word === undefined || exception.word === finding.word) &&
    (exception.name === undefined || exception.name === finding.found) &&
    appliesTo(exception, finding.file, finding.kind)
  )
}

function appliesTo({ files, kind: wanted }: Exception, file: string, kind: Kind): boolean {
  return (wanted === undefined || wanted === kind) && (files === undefined || file.startsWith(files))
}

/** Returns the patterns that match anywhere in the text. */
function matching(patterns: readonly Pattern[], text: string): Pattern[] {
  return patterns.filter(({ pattern }) => {
    pattern.lastIndex = 0
    return pattern.test(text)
  })
}

/** Whether the text is the path of a module, whose parts are found as names of files. */
function isImport(text: string): boolean {
  return /^(?:\.{1,2}\/|#)[\w./-]+\.[cm]?[jt]s$/.test(text)
}

function patternsOf(words: readonly Word[], source: (word: Word) => string | undefined): Pattern[] {
  return words.flatMap((word) => {
    const text = source(word)
    const { word: key, write } = word
    return text === undefined
      ? []
      : [{ word: key, write, pattern: new RegExp(text.replaceAll(' ', String.raw`\s+`), 'gi') }]
  })
}

/** `LeftFile`, `left_file` and `left-file` as "left file". */
export function spacedName(name: string): string {
  return name
    .replaceAll(/([a-z0-9])([A-Z])|([A-Z])(?=[A-Z][a-z])/g, '$1$3 $2')
    .replaceAll(/[^A-Za-z0-9]+/g, ' ')
    .trim()
    .toLowerCase()
}

/** A comment without its marks, names in it split as `spacedName` does. Ends of lines stay, for the numbers of lines. */
function plainText(text: string): string {
  return text
    .replace(/^\/[/*]+/, '')
    .replaceAll(/\n[ \t]*(?:\/\/|\*\/|\*|--|#)?/g, '\n')
    .replaceAll(/([a-z])([A-Z])/g, '$1 $2')
    .replaceAll('_', ' ')
}
