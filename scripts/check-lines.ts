// `npm run check:lines` lists every line of the tracked code that is longer than 140 characters. The layout leaves
// comments, strings and templates as they are, so nothing else keeps them short.
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'

const maxCharacters = 140
/** The functions of the examples are written as for other compilers and other projects. */
const paths = ['*.ts', '*.mjs', '*.cjs', ':!examples/functions/']

const tracked = execFileSync('git', ['ls-files', '-z', '--', ...paths], { encoding: 'utf8' }).split('\0')
// A file that was removed stays tracked until that is staged.
const found = tracked.filter((file) => file !== '' && existsSync(file)).flatMap(longLines)

for (const location of found) console.log(location)
if (found.length > 0) console.log(`${found.length} lines are longer than ${maxCharacters} characters`)
process.exitCode = found.length === 0 ? 0 : 1

function longLines(file: string): string[] {
  const lines = readFileSync(file, 'utf8').split('\n')
  return lines.flatMap((line, index) => (line.length > maxCharacters ? [`${file}:${index + 1}`] : []))
}
