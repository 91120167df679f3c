// The command `tenantry`. It passes the process to the commands and turns errors into exit codes.
import { runProgram } from './program.ts'
import { exitCodes, Interrupted } from './terminal/exit-codes.ts'

const interruption = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    // A second Ctrl-C ends a command that does not end by itself.
    if (interruption.signal.aborted) process.exit(exitCodes.interrupted)
    interruption.abort(new Interrupted())
  })
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  // The reader of the output has ended, such as `head`.
  if (error.code === 'EPIPE') process.exit(exitCodes.outputClosed)
  process.stderr.write(`tenantry: The output cannot be written: ${error.message}\n`)
  process.exit(exitCodes.failure)
})
// An error of standard error cannot be reported anywhere.
process.stderr.on('error', () => undefined)

process.exitCode = await runProgram(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  directory: process.cwd(),
  isInteractive: process.stdin.isTTY && process.stderr.isTTY,
  now: () => Date.now(),
  signal: interruption.signal,
})
