// `npm run bench -- NAME [--write]`: runs one benchmark and its floor, prints a table and, last, one JSON line.
// With --write the table replaces the benchmark's section in docs/performance.md.
import { readFile, readdir, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { join } from 'node:path'
import { table, type Figures, type Report } from '#bench/figures.ts'

const folder = import.meta.dirname
const notBenchmarks = new Set(['run', 'figures'])

const names = (await readdir(folder))
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.slice(0, -3))
  .filter((name) => !notBenchmarks.has(name))
const [name, ...flags] = process.argv.slice(2)
if (name === undefined || !names.includes(name) || flags.some((flag) => flag !== '--write')) {
  console.error(`usage: npm run bench -- NAME [--write]\nNAME is one of: ${names.join(', ')}`)
  process.exit(2)
}

const benchmark = (await import(`./${name}.ts`)) as { figures(report: Report): Promise<Figures> }
const figures = await benchmark.figures((line) => console.error(line))
const shown = table(figures)
console.log(shown)
if (flags.includes('--write')) await writeSection(name, shown)
const plain = Object.fromEntries(
  Object.entries(figures).map(([key, { value, unit, floor, peer, ratio }]) => [
    key,
    { value, unit, floor, peer, ratio },
  ]),
)
console.log(JSON.stringify({ bench: name, figures: plain }))

async function writeSection(bench: string, text: string): Promise<void> {
  const file = join(folder, '..', 'docs', 'performance.md')
  const begin = `<!-- bench:${bench} -->`
  const end = `<!-- /bench:${bench} -->`
  const page = await readFile(file, 'utf8')
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from < 0 || to < from) throw new Error(`docs/performance.md has no section between ${begin} and ${end}`)
  const day = new Date().toISOString().slice(0, 10)
  const machine = `Measured on ${cpus().length} cores, Node ${process.version}, ${day}, load client on the same cores.`
  await writeFile(file, `${page.slice(0, from + begin.length)}\n${machine}\n\n${text}\n${page.slice(to)}`)
}
