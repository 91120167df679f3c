// Runs test files, each as a process of its own, prints a line per file and the whole output of failures. A file is a program
// that writes TAP. `tap run` would load a hook for coverage into each process and all of its children, which takes a quarter of
// the CPU time of many files.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

/** The results of some files. */
export interface Totals {
  passed: number
  failed: number
  /** Files with failures, which may pass without the load of other tests. */
  failedFiles: readonly string[]
  /** Skipped tests, and those that are still to be written. */
  omitted: number
}

interface RunOptions {
  /** Number of files that run side by side. */
  jobs: number
  /** Seconds after which a file fails. */
  timeoutSeconds: number
  /** Whether comments of files without failures are printed: figures that a long run has measured. */
  printsComments: boolean
}

/** Seconds that a file has to report its timeout itself. */
const graceSeconds = 20
/** Milliseconds after the end of a file for which its output is awaited: a process that it has left may hold the pipe. */
const outputMilliseconds = 5_000
/** Numbers of the running files, from which they choose their ports. */
const slots = new Set<number>()
let finished = 0

/** Runs the files. */
export async function runFiles(files: readonly string[], { jobs, ...options }: RunOptions): Promise<Totals> {
  const results: Totals[] = []
  const waiting = [...files]
  const runNext = async () => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift())
      results.push(await runFile(file, options))
  }
  await Promise.all(Array.from({ length: jobs }, runNext))
  return sumOf(results)
}

/** Adds results. */
export function sumOf(results: readonly Totals[]): Totals {
  const sum = (read: (one: Totals) => number) => results.reduce((total, one) => total + read(one), 0)
  return {
    passed: sum(({ passed }) => passed),
    failed: sum(({ failed }) => failed),
    failedFiles: results.flatMap(({ failedFiles }) => failedFiles),
    omitted: sum(({ omitted }) => omitted),
  }
}

async function runFile(file: string, { timeoutSeconds, printsComments }: Omit<RunOptions, 'jobs'>): Promise<Totals> {
  const slot = takeSlot()
  const begin = performance.now()
  const preload = `--require=${JSON.stringify(resolve('test/support/fail-on-queued-queries.cjs'))}`
  const child = spawn(process.execPath, [file], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      // Most of the time of a short test is compiling, and most files are the same in all tests and services.
      NODE_COMPILE_CACHE: resolve('node_modules/.cache/compiled'),
      ...process.env,
      NODE_OPTIONS: `${process.env['NODE_OPTIONS'] ?? ''} ${preload}`,
      TAP_JOB_ID: String(slot),
      TAP_TIMEOUT: String(timeoutSeconds),
    },
  })
  const timer = setTimeout(() => child.kill('SIGKILL'), (timeoutSeconds + graceSeconds) * 1_000)
  const output: Buffer[] = []
  child.stdout.on('data', (chunk: Buffer) => output.push(chunk))
  const closed = once(child, 'close')
  const [code] = (await once(child, 'exit')) as [number | null]
  await Promise.race([closed, sleep(outputMilliseconds, undefined, { ref: false })])
  child.stdout.destroy()
  clearTimeout(timer)
  slots.delete(slot)
  const text = Buffer.concat(output).toString()
  const { pass = 0, fail = 0, skip = 0, todo = 0 } = countsOf(text)
  // Each file must have executed tests, and its exit code must match their results.
  const isBroken = fail === 0 && (pass === 0 || code !== 0)
  const isFailed = fail > 0 || isBroken
  if (isFailed || skip + todo > 0) console.log(`# Subtest: ${file}\n${text}# exit code: ${code ?? 'none'}`)
  else if (printsComments) for (const comment of commentsOf(text)) console.log(comment)
  const milliseconds = (performance.now() - begin).toFixed(0)
  console.log(`${isFailed ? 'not ok' : 'ok'} ${++finished} - ${file} # time=${milliseconds}ms`)
  return {
    passed: pass,
    failed: fail + (isBroken ? 1 : 0),
    failedFiles: isFailed ? [file] : [],
    omitted: skip + todo,
  }
}

function takeSlot(): number {
  for (let slot = 0; ; slot++) {
    if (slots.has(slot)) continue
    slots.add(slot)
    return slot
  }
}

/** Returns the comments that a file has written itself, without those of tap. */
function commentsOf(output: string): string[] {
  const lines = output.split('\n').map((line) => line.trim())
  return lines.filter((line) => line.startsWith('# ') && !/^# (Subtest: |\{ total: |time=)/.test(line))
}

/** Reads the numbers of assertions, which tap writes at the end: `# { total: 7, pass: 6, fail: 1 }`. */
function countsOf(output: string): Partial<Record<string, number>> {
  const written = /^# \{ (total: .*) \}$/m.exec(output)?.[1] ?? ''
  const pairs = written === '' ? [] : written.split(', ').map((pair) => pair.split(': '))
  return Object.fromEntries(pairs.map(([name = '', count]) => [name, Number(count)]))
}
