// `npm test`: provides a Docker Engine with the project's images, runs tap, prints a line per file and the whole output
// of failures, and ends with `N passed, N failed`. An empty run, skipped tests, crashed files and a missing engine are
// failures.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { openEngineWithImages } from './engine-with-images.ts'
import { ensureSwift } from './swift.ts'

interface Totals {
  passed: number
  failed: number
}

/** Texts in the test files that need a Docker Engine. */
const engineUses = [
  'docker-platform',
  'operated-installation',
  'startBackupPlatform',
  'support/kills',
  'support/docker',
  'support/compose-platform',
  'support/sandbox',
  'TENANTRY_DOCKER_HOST',
  'testEngine',
  'images/build',
  'scripts/engine',
]

/** Texts in the test files that need an S3 server. */
const objectStoreUses = ['support/s3-server', 'support/bucket-target', 'support/killed-platform']

const isFull = process.env['TENANTRY_SOAK'] === 'full'
/** Whether a file `NAME.soak.test.ts` takes too long for every run. */
const isSoak = (file: string) => file.endsWith('.soak.test.ts')
/** Files, or those in the named folders of `test/`. */
const requested = process.argv.slice(2).flatMap((name) => (name.endsWith('.ts') ? [name] : testsOf(name)))
/**
 * Whether a file `NAME.alone.test.ts` stops the engine. It is part of every run, and only the project's own engine may
 * be stopped.
 */
const endsEngine = (file: string) => file.endsWith('.alone.test.ts')
const files =
  requested.length > 0
    ? requested
    : globSync('test/**/*.test.ts')
        .filter((file) => isFull || !isSoak(file))
        .sort()
/** Whether a file `NAME.quiet.test.ts` measures effects on others, and therefore needs a machine without other tests. */
const needsQuiet = (file: string) => file.endsWith('.quiet.test.ts')
/** Whether a file runs after all others, one at a time. Some of the long ones also stop the engine. */
const isAlone = (file: string) => isSoak(file) || needsQuiet(file) || endsEngine(file)
const together = files.filter((file) => !isAlone(file))
const withoutEngine = together.filter((file) => !needsEngine(file))
/** Every ninth of the files that need no engine. The time of one such part is about that of a build of the images. */
const partOf = (part: number) => withoutEngine.filter((_, at) => at % 9 === part)
const duringBuild = partOf(0)
const duringOutages = partOf(1)

if (files.some(needsObjectStore)) await orEnd(ensureSwift())
const opening = files.some(needsEngine) ? openEngineWithImages((line) => console.log(line)) : undefined
// An engine that can't be opened is reported after the tests that don't need it.
opening?.catch(() => undefined)
const totals = [await runTap(duringBuild, [])]
const engine = opening && (await orEnd(opening))
const excluded = requested.length === 0 && engine?.isOwn === false ? files.filter(endsEngine) : []
for (const file of excluded)
  console.log(
    `Excluded from this run: ${file} kills the Docker Engine, and ${engine?.host ?? ''} is not the project's own.`,
  )
const alone = files.filter((file) => isAlone(file) && !excluded.includes(file))
const outages = alone.filter((file) => endsEngine(file))
try {
  const last = [...duringBuild, ...duringOutages]
  totals.push(
    await runTap(
      together.filter((file) => !last.includes(file)),
      [],
    ),
  )
  totals.push(...(await Promise.all([runTap(outages, ['--jobs=1']), runTap(duringOutages, ['--jobs=2'])])))
  totals.push(
    await runTap(
      alone.filter((file) => !outages.includes(file)),
      ['--jobs=1'],
    ),
  )
  const passed = totals.reduce((sum, part) => sum + part.passed, 0)
  const failed = totals.reduce((sum, part) => sum + part.failed, passed === 0 ? 1 : 0)
  end(passed, failed)
} finally {
  await engine?.stop()
}

/** Returns the tests of a folder. @throws Error for a folder without tests */
function testsOf(folder: string): string[] {
  const found = globSync(`test/${folder}/**/*.test.ts`)
    .filter((file) => isFull || !isSoak(file))
    .sort()
  if (found.length === 0) throw new Error(`The folder test/${folder} has no tests.`)
  return found
}

/** Whether a test file needs an engine. Other runs start without one. */
function needsEngine(file: string): boolean {
  const text = readFileSync(file, 'utf8')
  return engineUses.some((use) => text.includes(use))
}

function needsObjectStore(file: string): boolean {
  const text = readFileSync(file, 'utf8')
  return objectStoreUses.some((use) => text.includes(use))
}

/** Waits for a dependency of the tests. Its failure is a failure of the run. */
async function orEnd<T>(needed: Promise<T>): Promise<T> {
  try {
    return await needed
  } catch (error) {
    console.error(error)
    end(0, 1)
    process.exit(1)
  }
}

async function runTap(files: readonly string[], options: readonly string[]): Promise<Totals> {
  if (files.length === 0) return { passed: 0, failed: 0 }
  // Full runs have no practical time limit.
  const timeout = isFull ? ['--timeout=28800'] : []
  const nodeOptions = `${process.env['NODE_OPTIONS'] ?? ''} --require=${JSON.stringify(resolve('test/support/fail-on-queued-queries.cjs'))}`
  const tap = spawn('tap', ['run', '--reporter=tap', ...timeout, ...options, ...files], {
    stdio: ['ignore', 'pipe', 'inherit'],
    // Most of the time of a short test is compiling, and most files are the same in all tests and services.
    env: { NODE_COMPILE_CACHE: resolve('node_modules/.cache/compiled'), ...process.env, NODE_OPTIONS: nodeOptions },
  })
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
      summary = Object.fromEntries(
        totals[1]
          .split(', ')
          .map((part) => part.split(': '))
          .map(([name = '', count]) => [name, Number(count)]),
      )
    }
    block.push(line)
  }
  const [code] = tap.exitCode === null ? ((await once(tap, 'exit')) as [number | null]) : [tap.exitCode]
  const failed = (summary['fail'] ?? 0) + (summary['skip'] ?? 0) + (summary['todo'] ?? 0)
  // Each run must have executed tests, and its exit code must match their results.
  const broken = (summary['pass'] ?? 0) === 0 || (code !== 0 && failed === 0) ? 1 : 0
  return { passed: summary['pass'] ?? 0, failed: failed + broken }
}

function end(passed: number, failed: number): void {
  console.log(`${passed} passed, ${failed} failed`)
  process.exitCode = failed === 0 ? 0 : 1
}
