// Runs the command line for a test: in this process, with streams of its own.
import { PassThrough } from 'node:stream'
import { runProgram } from '#cli/program.ts'
import type { Terminal } from '#cli/terminal/terminal.ts'

/** The result of a command. */
export interface Ran {
  code: number
  stdout: string
  stderr: string
}

/** Options of a command. */
export interface RunOptions {
  env?: Readonly<Record<string, string>>
  /** The text of standard input. */
  input?: string
  directory?: string
  signal?: AbortSignal
  /** Whether standard output is a terminal. */
  isTerminal?: boolean
  /** Called for each output on standard output. */
  onData?: (text: string) => void
  /** Called for each output on standard error. */
  onProgress?: (text: string) => void
}

/** Runs commands with the environment of one test. */
export function cliOf(shared: Required<Pick<RunOptions, 'env' | 'directory'>>) {
  return async (args: readonly string[], options: RunOptions = {}): Promise<Ran> => {
    const stdin = new PassThrough()
    stdin.end(options.input ?? '')
    const stdout = Object.assign(new PassThrough(), { isTTY: options.isTerminal ?? false })
    const stderr = new PassThrough()
    const output = collect(stdout, options.onData)
    const progress = collect(stderr, options.onProgress)
    const terminal: Terminal = {
      stdin,
      stdout,
      stderr,
      env: { ...shared.env, ...options.env },
      directory: options.directory ?? shared.directory,
      isInteractive: false,
      now: () => Date.now(),
      signal: options.signal ?? new AbortController().signal,
    }
    const code = await runProgram(args, terminal)
    stdout.end()
    stderr.end()
    return { code, stdout: await output, stderr: await progress }
  }
}

/** Returns the objects of an output with `--json`: one in each line. */
export function jsonLines<Row = Record<string, unknown>>({ stdout }: Pick<Ran, 'stdout'>): Row[] {
  return stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Row)
}

async function collect(stream: PassThrough, onText?: (text: string) => void): Promise<string> {
  let all = ''
  for await (const chunk of stream.setEncoding('utf8')) {
    all += String(chunk)
    onText?.(String(chunk))
  }
  return all
}
