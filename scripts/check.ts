// `npm run check` runs all checks of the code at once, and prints the whole output of each one that fails.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'

const checks = ['types', 'lint', 'imports', 'lines', 'words', 'comments', 'spelling', 'format', 'docs']

const results = await Promise.all(
  checks.map(async (check) => {
    const begin = performance.now()
    const run = spawn('npm', ['run', '--silent', `check:${check}`], { stdio: ['ignore', 'pipe', 'pipe'] })
    const [output, errors] = await Promise.all([text(run.stdout), text(run.stderr), once(run, 'close')])
    const isGood = run.exitCode === 0
    console.log(`${isGood ? 'ok' : 'not ok'} - ${check} # ${((performance.now() - begin) / 1000).toFixed(1)} s`)
    if (!isGood) console.log(output + errors)
    return isGood
  }),
)
process.exitCode = results.every(Boolean) ? 0 : 1
