// Runs the installation as a child process, which is started again when it is killed. Each start ends the services that the
// killed one has left.
import { spawn, type ChildProcess } from 'node:child_process'
import { write } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { respawn, type ProcessEnd } from './process/respawn.ts'

const main = fileURLToPath(new URL('main.ts', import.meta.url))

/** Runs the installation until it ends by itself or is asked to stop. @returns the exit code */
export async function runRespawned(args: string[]): Promise<number> {
  const stopping = new AbortController()
  let child: ChildProcess | undefined
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      stopping.abort()
      child?.kill(signal)
    })
  }
  const run = () =>
    new Promise<ProcessEnd>((resolve) => {
      // A group of its own: otherwise it would receive the terminal's ^C twice.
      child = spawn(process.execPath, [main, ...args], { stdio: 'inherit', detached: true })
      child.once('exit', (code, signal) => resolve({ code, signal }))
      child.once('error', () => resolve({ code: null, signal: null }))
    })
  const code = await respawn({
    run,
    pause: (milliseconds) => sleep(milliseconds, undefined, { signal: stopping.signal }).catch(() => undefined),
    elapsed: () => performance.now(),
    report: (signal, delay) => {
      const line = {
        level: 40,
        time: Date.now(),
        signal,
        delay,
        msg: 'The supervisor was killed and is started again.',
      }
      // Asynchronous, because its reader may be blocked.
      write(2, `${JSON.stringify(line)}\n`, () => undefined)
    },
    isStopping: () => stopping.signal.aborted,
  })
  return code ?? (await endServices(args))
}

/** Ends the services of a killed supervisor that is not started again. @returns the exit code */
async function endServices(args: string[]): Promise<number> {
  const [{ parseOptions }, { DataDirectoryInUse, lockDataDirectory }, { RunRecords }] = await Promise.all([
    import('./options.ts'),
    import('./process/data-lock.ts'),
    import('./process/run-records.ts'),
  ])
  const data = parseOptions(args, { cwd: process.cwd(), cores: availableParallelism() })?.data
  if (data === undefined) return 0
  try {
    const release = await lockDataDirectory(data)
    await new RunRecords(join(data, 'run')).endOrphans({ info: () => undefined })
    await release()
    return 0
  } catch (error) {
    // The services belong to another installation that was started since.
    if (error instanceof DataDirectoryInUse) return 0
    process.stderr.write(`The services could not be ended: ${String(error)}\n`)
    return 1
  }
}
