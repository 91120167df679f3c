// A child process of a benchmark: starts it, waits for its first output, stops it.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Identity } from '#local/process/unprivileged.ts'

export interface Program {
  pid: number
  stop(): Promise<void>
}

export interface Child extends Program {
  /** The JSON that the process printed first. */
  firstOutput: Record<string, unknown>
}

/**
 * Starts `node file …` and waits for its first line of output, which is JSON.
 * @param identity the system user of the process; undefined for the present one
 */
export async function startChild(
  file: string,
  args: string[] = [],
  environment: Record<string, string> = {},
  identity?: Identity,
): Promise<Child> {
  const child = spawn(process.execPath, [file, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...environment },
    ...identity,
  })
  return { firstOutput: await firstLine(child), ...programOf(child) }
}

/** Starts a program that is not Node's. It may not be ready yet. */
export function startProgram(command: string, args: string[], environment: Record<string, string> = {}): Program {
  return programOf(
    spawn(command, args, { stdio: ['ignore', 'ignore', 'inherit'], env: { ...process.env, ...environment } }),
  )
}

function programOf(child: ChildProcess): Program {
  return {
    pid: child.pid ?? 0,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const gone = once(child, 'exit')
      child.kill('SIGTERM')
      await gone
    },
  }
}

async function firstLine(child: ChildProcess): Promise<Record<string, unknown>> {
  let text = ''
  return new Promise((resolve, reject) => {
    child.once('exit', (code) =>
      reject(new Error(`The child process ended before its first output: ${code ?? 'a signal'}`)),
    )
    child.stdout?.on('data', (chunk: Buffer) => {
      if (text.includes('\n')) return
      text += chunk.toString()
      if (!text.includes('\n')) return
      child.removeAllListeners('exit')
      resolve(JSON.parse(text.slice(0, text.indexOf('\n'))) as Record<string, unknown>)
    })
  })
}
