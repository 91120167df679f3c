// Writes and checks the tables of attacks in docs/security.md, one for each file of tests.
import { readFile, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import type { Test } from 'tap'
import type { Attack } from '../attack.ts'
import type { Target } from './target.ts'
import { attacksIn } from '../attacks/index.ts'
import type { Outcome } from './measure.ts'
import { isFull, type SuiteOutcome } from './suite.ts'

interface AttackTable {
  /** The text in front of the section. */
  begin: string
  /** The targets whose attacks are its rows. With more than one, the table has a column for them. */
  targets: readonly Target[]
}

/** The attacks on an installation of `npm start`. */
export const localTable: AttackTable = {
  begin: '<!-- from test/hostile/hostile.rotated.quiet.test.ts -->\n',
  targets: ['npm start'],
}

/** The attacks on a Docker region. */
export const dockerTable: AttackTable = {
  begin: '<!-- from test/hostile/docker.rotated.quiet.test.ts -->\n',
  targets: ['shared Postgres', 'own Postgres'],
}

const page = new URL('../../../docs/security.md', import.meta.url)
const end = '<!-- to here -->'

const measuredHeads = [
  'failed requests of others',
  'p99 of the neighbour: ms, and against quiet',
  'most memory (MB)',
  'the attacker sees',
  'normal after',
]

const megabytes = (bytes: number) => (bytes / 1e6).toFixed(0)

const heads = ({ targets }: AttackTable) => [
  'attack',
  'attacker',
  ...(targets.length > 1 ? ['tenants with'] : []),
  'protected by',
  ...measuredHeads,
]

/** Returns the cells of an attack that no run changes. */
const fixedCells = ({ targets }: AttackTable, { name, attacker, bound }: Attack, target: Target) => [
  name,
  attacker,
  ...(targets.length > 1 ? [`${target.startsWith('shared') ? 'a' : 'their'} ${target}`] : []),
  bound,
]

function cells(table: AttackTable, outcome: Outcome): string[] {
  const { attack, target, failures, requests, p99, ratio, normalAfterMilliseconds } = outcome
  const memory = Object.entries(outcome.peaks)
    .map(([service, bytes]) => `${service} ${megabytes(bytes)}`)
    .join(', ')
  return [
    ...fixedCells(table, attack, target),
    `${failures.length} of ${requests}`,
    `${p99.toFixed(0)}, ${ratio.toFixed(1)}×`,
    memory,
    `\`${outcome.seen.replaceAll('|', '\\|').replaceAll('`', "'").replaceAll(/\s+/g, ' ').slice(0, 160)}\``,
    normalAfterMilliseconds === undefined ? 'not' : `${(normalAfterMilliseconds / 1000).toFixed(1)} s`,
  ]
}

const row = (texts: readonly string[]) => `| ${texts.join(' | ')} |`

/** Returns the first cells of a row, to find and compare rows. */
const beginOf = (table: AttackTable, attack: Attack, target: Target) =>
  `| ${fixedCells(table, attack, target).join(' | ')} |`

const headRows = (table: AttackTable) => [row(heads(table)), row(heads(table).map(() => '---'))]

/**
 * Compares the rows in docs/security.md with the attacks of the table's targets, and prints what was measured. With
 * TENANTRY_WRITE_DOCS, it writes the table before.
 */
export async function checkTable(t: Test, table: AttackTable, suites: readonly SuiteOutcome[]): Promise<void> {
  const outcomes = suites.flatMap((suite) => suite.outcomes)
  t.comment(`\n${[...headRows(table), ...outcomes.map((outcome) => row(cells(table, outcome)))].join('\n')}`)
  if (process.env['TENANTRY_WRITE_DOCS'] !== undefined) {
    const day = new Date().toISOString().slice(0, 10)
    const quiet = suites.map(({ quietP99 }) => `${quietP99.toFixed(0)} ms`).join(' and ')
    await write(
      table,
      // Without a measured suite, the sentence still describes the rows.
      suites.length === 0
        ? undefined
        : `Measured with ${isFull ? 'full' : 'small'} counts on ${cpus().length} cores, Node ${process.version}, ${day}, ` +
            `attackers on the same cores${isFull ? ', with a lower priority' : ''}. Without an attack, the neighbour's p99 is ${quiet}.`,
      outcomes,
    )
  }
  const expected = table.targets.flatMap((target) => attacksIn(target).map((attack) => beginOf(table, attack, target)))
  const rows = await documentedRows(table)
  t.same(
    rows.map((line, n) => line.slice(0, expected[n]?.length ?? line.length)),
    expected,
  )
}

/** Writes the table and the sentence before it, if there is a new one. An attack that was not measured keeps its row. */
async function write(table: AttackTable, sentence: string | undefined, outcomes: readonly Outcome[]): Promise<void> {
  const text = await readFile(page, 'utf8')
  const from = text.indexOf(table.begin)
  const to = text.indexOf(end, from)
  if (from < 0 || to < 0) throw new Error(`docs/security.md has no section between ${table.begin.trim()} and ${end}`)
  const before = await documentedRows(table)
  const rows = table.targets.flatMap((target) =>
    attacksIn(target).map((attack) => {
      const outcome = outcomes.find((measured) => measured.attack === attack && measured.target === target)
      if (outcome !== undefined) return row(cells(table, outcome))
      const known = before.find((line) => line.startsWith(beginOf(table, attack, target)))
      return known ?? row([...fixedCells(table, attack, target), ...measuredHeads.map(() => '–')])
    }),
  )
  const known = text.slice(from + table.begin.length, text.indexOf('\n| ', from)).trim()
  const section = `\n${sentence ?? known}\n\n${[...headRows(table), ...rows].join('\n')}\n\n`
  await writeFile(page, text.slice(0, from + table.begin.length) + section + text.slice(to))
}

async function documentedRows({ begin }: AttackTable): Promise<string[]> {
  const text = await readFile(page, 'utf8')
  const from = text.indexOf(begin)
  return text
    .slice(from, text.indexOf(end, from))
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .slice(2)
}
