// `npm test`: runs tap, shows a line a file and the whole of what failed, and ends with `N passed, N failed`.
// No test run, a skipped one and a crashed file are failures.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

const files = process.argv.slice(2)
// Full counts take what they take.
const patience = process.env['TENANTRY_SOAK'] === 'full' ? ['--timeout=14400'] : []
const tap = spawn('tap', ['run', '--reporter=tap', ...patience, ...files], { stdio: ['ignore', 'pipe', 'inherit'] })

let block: string[] = []
let summary: Record<string, number> = {}
for await (const line of createInterface({ input: tap.stdout })) {
  const result = /^(ok|not ok) \d+ - (.*)$/.exec(line)
  if (result !== null) {
    const failed = result[1] === 'not ok' || line.includes('# SKIP')
    if (failed) console.log(block.join('\n'))
    console.log(line)
    block = []
    continue
  }
  const totals = /^# \{ (total: .*) \}$/.exec(line)
  if (totals?.[1] !== undefined) {
    summary = Object.fromEntries(totals[1].split(', ').map((part) => part.split(': ')).map(([name = '', count]) => [name, Number(count)]))
  }
  block.push(line)
}
const [code] = tap.exitCode === null ? ((await once(tap, 'exit')) as [number | null]) : [tap.exitCode]

const passed = summary['pass'] ?? 0
const failed = (summary['fail'] ?? 0) + (summary['skip'] ?? 0) + (summary['todo'] ?? 0)
const broken = passed === 0 || (code !== 0 && failed === 0) ? 1 : 0
console.log(`${passed} passed, ${failed + broken} failed`)
process.exitCode = failed + broken === 0 ? 0 : 1
