// `npm run check:lines` lists every line of the tracked code that is longer than 140 characters. The formatter does not
// change comments, strings and templates.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

const maxCharacters = 140
/** Patterns of the checked files, without generated ones and functions that follow the rules of other compilers. */
const paths = ['*.ts', '*.mjs', '*.cjs', ':!examples/functions/', ':!client/src/generated/']

const tracked = execFileSync('git', ['ls-files', '-z', '--', ...paths], { encoding: 'utf8' }).split('\0')
// A removed file stays tracked until its removal is staged.
const found = tracked.filter((file) => file !== '' && existsSync(file)).flatMap(longLines)

for (const location of found) console.log(location)
if (found.length > 0) console.log(`${found.length} lines are longer than ${maxCharacters} characters`)
process.exitCode = found.length === 0 ? 0 : 1

function longLines(file: string): string[] {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.flatMap((line, index) => (line.length > maxCharacters ? [`${file}:${index + 1}`] : []))
}
