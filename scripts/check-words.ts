// `npm run check:words -- FOLDER…` finds words that Tenantry does not use, in names of files, identifiers and comments;
// with `--texts` in strings and templates too. `--counts` prints how many there are of each word in each part.
import { parseArgs } from 'node:util'
import { readTracked } from './tracked-files.ts'
import { exceptions } from './words/exceptions.ts'
import { createFinder, type Finding } from './words/find.ts'
import { words } from './words/words.ts'

const { values: options, positionals: folders } = parseArgs({
  allowPositionals: true,
  options: { texts: { type: 'boolean', default: false }, counts: { type: 'boolean', default: false } },
})
const endings = ['ts', 'mjs', 'cjs', 'sql', 'prisma', 'sh']

const finder = createFinder(words, exceptions, options.texts)
for (const { file, source } of readTracked(folders, endings)) finder.addFile(file, source)

const findings = finder.findings()
if (options.counts) printCounts(findings)
else
  for (const { file, line, word, found, write } of findings)
    console.log(`${file}:${line} ${found} (${word}) → ${write}`)
if (findings.length > 0) console.log(`${findings.length} uses of words that Tenantry does not use`)

// Only a run over all files shows which exceptions match nothing.
const unused =
  folders.length > 0 ? [] : finder.unusedExceptions().filter(({ kind }) => options.texts || kind !== 'text')
for (const exception of unused) console.log(`This exception matches nothing: ${JSON.stringify(exception)}`)
process.exitCode = findings.length === 0 && unused.length === 0 ? 0 : 1

function printCounts(found: Finding[]): void {
  const parts = [...new Set(found.map(({ file }) => partOf(file)))].toSorted()
  const count = (word: string | undefined, part: string | undefined): number =>
    found.filter((one) => (word ?? one.word) === one.word && (part ?? partOf(one.file)) === partOf(one.file)).length
  const keys = [...new Set(found.map(({ word }) => word))].toSorted((a, b) => count(b, undefined) - count(a, undefined))
  const rows = keys.map((word) => [word, ...parts.map((part) => count(word, part)), count(word, undefined)])
  const total = ['total', ...parts.map((part) => count(undefined, part)), found.length]
  for (const row of [['word', ...parts, 'total'], ...rows, total]) console.log(`| ${row.join(' | ')} |`)
}

function partOf(file: string): string {
  return file.includes('/') ? file.slice(0, file.indexOf('/')) : 'root'
}
