// `npm test`: provides a Docker Engine with the project's images, runs the tests, and ends with `N passed, N failed`. An empty
// run, skipped tests, crashed files and a missing engine are failures. A file that failed while others ran runs once more, alone.
import { globSync, readFileSync } from 'node:fs'
import { execFileSync } from 'node:child_process'
import { openEngineWithImages } from './engine-with-images.ts'
import { ensureSwift } from './swift.ts'
import { runFiles, sumOf, type Totals } from './test-files.ts'

/** Files that run side by side. More than these take longer, because they use both cores of a small machine anyway. */
const parallel = 3
/** One in so many of the files `NAME.rotated.test.ts` and `NAME.rotated.quiet.test.ts` is part of a run. */
const turns = 16
/** More failed files than these are not a matter of load. */
const maxRepeated = 8

/** Texts in the test files that need a Docker Engine. */
const engineUses = [
  'docker-platform',
  'operated-installation',
  'startBackupPlatform',
  'support/kills',
  'support/docker',
  'support/compose-platform',
  'support/containers',
  'support/sandbox',
  'support/swarm-',
  'TENANTRY_DOCKER_HOST',
  'testEngine',
  'images/build',
  'scripts/engine',
]

/** Texts in the test files that need an S3 server. */
const objectStoreUses = [
  'support/s3-server',
  'support/bucket-target',
  'support/killed-platform',
  'support/swarm-platform',
]

const isFull = process.env['TENANTRY_SOAK'] === 'full'
/** Whether a file `NAME.soak.test.ts` takes too long for every run. */
const isSoak = (file: string) => file.endsWith('.soak.test.ts')
/**
 * The files `NAME.rotated.test.ts` of this run. They are the longer ones: together, they would make each run twice as long. The
 * commit decides which ones it takes, so that another run of the same commit takes the same.
 */
const rotated = rotatedFiles()
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
        .filter((file) => isFull || (!isSoak(file) && (!isRotated(file) || rotated.includes(file))))
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
if (requested.length === 0 && !isFull)
  console.log(`Of the files NAME.rotated.test.ts, this run takes ${rotated.length}.`)
const results = [await run(duringBuild)]
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
  results.push(await run(together.filter((file) => !last.includes(file))))
  results.push(...(await Promise.all([run(outages, 1), run(duringOutages, parallel - 1)])))
  const others = alone.filter((file) => !outages.includes(file))
  results.push(await run(others, 1))
  const { passed, failed, failedFiles, omitted } = sumOf(results)
  const mayRepeat = requested.length === 0 && !isFull && failedFiles.length <= maxRepeated
  if (failedFiles.length === 0 || !mayRepeat) end(passed, failed + omitted)
  else {
    console.log(`Repeated alone, because they failed while other tests ran: ${failedFiles.join(', ')}`)
    const repeated = await run(failedFiles, 1)
    if (repeated.failed === 0) console.log(`Passed only alone, to be mended: ${failedFiles.join(', ')}`)
    end(passed + repeated.passed, repeated.failed + omitted + repeated.omitted)
  }
} finally {
  await engine?.stop()
}

/** Runs files side by side. Full runs have no practical time limit. */
function run(files: readonly string[], jobs = parallel): Promise<Totals> {
  return runFiles(files, { jobs, timeoutSeconds: isFull ? 28_800 : 900, printsComments: isFull })
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

function isRotated(file: string): boolean {
  return file.includes('.rotated.')
}

function rotatedFiles(): string[] {
  const turn = Number.parseInt(commit().slice(0, 8), 16) % turns
  return globSync('test/**/*.rotated.*test.ts')
    .sort()
    .filter((_, at) => at % turns === turn)
}

/** Returns the ID of the commit; that of none in a copy of the files without their history. */
function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] })
  } catch {
    return '0'
  }
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

function end(passed: number, failures: number): void {
  const failed = passed === 0 ? Math.max(1, failures) : failures
  console.log(`${passed} passed, ${failed} failed`)
  process.exitCode = failed === 0 ? 0 : 1
}
