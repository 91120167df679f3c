// Tests of the check for words that the code does not use, and of its exceptions.
import { test } from 'tap'
import { createFinder, spacedName } from '#scripts/words/find.ts'
import type { Exception } from '#scripts/words/word.ts'
import { words } from '#scripts/words/words.ts'

test('the check finds words in names of files and folders, each folder once', async (t) => {
  const finder = createFinder(words, [], false)
  finder.addFile('gateway/docker-door/left-file.ts', '')
  finder.addFile('gateway/docker-door/route.ts', '')
  t.same(
    finder.findings().map(({ file, word, kind }) => ({ file, word, kind })),
    [
      { file: 'gateway/docker-door', word: 'door', kind: 'path' },
      { file: 'gateway/docker-door/left-file.ts', word: 'left', kind: 'path' },
    ],
  )
})

test('the check finds words in identifiers, each once in a file, with its first line', async (t) => {
  const source = 'const a = 1\nconst askedAt = a\nvoid askedAt\nclass LeftFile { #books = 1 }\nlet max_wait = mostBytes'
  t.same(found(source), ['2 askedAt ask', '4 LeftFile left', '4 #books books', '5 mostBytes most'])
})

test('the check finds words in comments, with their lines and across the ends of lines', async (t) => {
  const source = [
    '/**',
    ' * A call is under',
    ' * way. Nobody waits.',
    ' */',
    '// It goes',
    '// on.',
    'const a = 1 // anew',
  ].join('\n')
  t.same(found(source), ['3 Nobody nobody', '2 under way under way', '5 goes on go on', '7 anew anew'].toSorted(byLine))
})

test('the check finds names in comments by their parts', async (t) => {
  t.same(found('// See `lookMilliseconds` and `left_over`.'), ['1 look look', '1 left over leftover'])
})

test('the check finds words in strings and templates only when texts are searched', async (t) => {
  // oxlint-disable-next-line no-template-curly-in-string -- the string is source code
  const source = "const a = 'refused'; const b = `told ${a === '}' ? `asked ${a}` : a} door`"
  t.same(found(source), [])
  t.same(found("import './docker-door.ts'", true), [])
  t.same(found(source, true), ['1 refused refuse', '1 told tell', '1 asked ask', '1 door door'])
})

test('the check reads regular expressions and division as code', async (t) => {
  t.same(found('const a = /[\'"`]/.test(b) ? c / d : e / f // told'), ['1 told tell'])
})

test('the check allows ordinary meanings', async (t) => {
  const prose = [
    'Look up the name. It looks like a path, in place of a URL, with six decimal places, renamed into place.',
    'One round trip. On the other hand, rows are counted by hand. There is no limit; it is no longer valid.',
    'Stored on disk as soon as it arrives, kept for an hour, on the left side. It goes on the network.',
  ]
  for (const text of prose) t.same(found(`// ${text}`), [], text)
  t.same(found('lookup(); lookUp(); roundTrip(); inPlace(); left(); mark(); placeholder(); isWithin(); foundAt()'), [])
})

test('the check finds words in SQL, Prisma schemas and shell scripts', async (t) => {
  t.same(found("select told from t -- asked\nwhere a = 'door'", false, 'a.sql'), ['1 told tell', '1 asked ask'])
  t.same(found('model A { // booked\n  askedAt String\n}', false, 'a.prisma'), ['1 booked books', '2 askedAt ask'])
  t.same(found('# anew\nx="$#" # told', false, 'a.sh'), ['1 anew anew', '2 told tell'])
})

test('the check honours exceptions by word, name, kind and folder, and reports those that match nothing', async (t) => {
  const exceptions: Exception[] = [
    { word: 'books', files: 'test/rest/', reason: 'Sample data.' },
    { name: 'askedAt', reason: 'A column.' },
    { word: 'tell', kind: 'comment', reason: 'For this test.' },
    { word: 'door', files: 'test/', reason: 'Matches nothing.' },
  ]
  const finder = createFinder(words, exceptions, false)
  finder.addFile('test/rest/a.ts', 'books(askedAt) // told at `askedAt`')
  finder.addFile('test/b.ts', 'books(told, asked)')
  t.same(
    finder.findings().map(({ file, found }) => `${file} ${found}`),
    ['test/b.ts books', 'test/b.ts told', 'test/b.ts asked'],
  )
  t.same(finder.unusedExceptions(), [exceptions[3]])
})

test('spacedName splits names into words', async (t) => {
  t.same(['LeftFile', 'left_file', 'left-file', 'readHTTPAnswer', '#isLetIn', 'MAX_TRIPS'].map(spacedName), [
    'left file',
    'left file',
    'left file',
    'read http answer',
    'is let in',
    'max trips',
  ])
})

function found(source: string, hasTexts = false, file = 'a.ts'): string[] {
  const finder = createFinder(words, [], hasTexts)
  finder.addFile(file, source)
  return finder
    .findings()
    .map(({ line, found, word }) => `${line} ${found} ${word}`)
    .toSorted(byLine)
}

function byLine(a: string, b: string): number {
  return Number.parseInt(a) - Number.parseInt(b)
}
