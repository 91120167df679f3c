// Runs a whole installation (`npm start -- --json`) for a test or a benchmark.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { isFree } from '#local/process/ports.ts'
import { asIdentity, type Identity } from '#local/process/unprivileged.ts'
import { freePort } from './postgres.ts'

export interface Installation {
  controlUrl: string
  gatewayUrl: string
  platformKey: string
  data: string
  supervisor: ChildProcess
  /** The output of the supervisor so far. */
  output(): { stdout: string; stderr: string }
  /** Pid of a service: `postgres`, `control-plane`, `runtime`, `gateway`. */
  pid(service: string): Promise<number>
  /** Stops the installation with SIGTERM. @returns the exit code */
  stop(): Promise<number | null>
  /** Kills the supervisor and all services with SIGKILL. */
  killAll(): Promise<void>
}

export interface InstallationOptions {
  dataDirectory?: string
  port?: number
  environment?: Record<string, string>
  logLevel?: string
  /** Starts the installation with `--watch`. */
  watch?: boolean
  /** User that runs the installation; the data directory must belong to this user. */
  user?: Identity
}

const project = new URL('../../', import.meta.url).pathname.replace(/\/$/, '')
const main = join(project, 'local/src/main.ts')

/** Starts an installation and waits until it is ready. @throws Error with the end of the log when it ends before that */
export async function startInstallation(options: InstallationOptions = {}): Promise<Installation> {
  const data = options.dataDirectory ?? join(await mkdtemp(join(tmpdir(), 'tenantry-installation-')), 'data')
  const port = options.port ?? (await freePair())
  const started = {
    command: process.execPath,
    args: [
      main,
      '--json',
      '--data',
      data,
      '--port',
      String(port),
      ...(options.logLevel === undefined ? [] : ['--log-level', options.logLevel]),
      ...(options.watch === true ? ['--watch'] : []),
    ],
  }
  const { command, args } = await asIdentity(options.user, [project, dirname(data)], started)
  const supervisor = spawn(command, args, {
    env: { ...process.env, ...options.environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let stdout = ''
  let stderr = ''
  supervisor.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text))
  const ready = new Promise<string>((resolve, reject) => {
    supervisor.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
      if (stdout.includes('\n')) resolve(stdout)
    })
    supervisor.once('exit', (code) => reject(new Error(`the installation ended with ${code}:\n${stderr.slice(-4000)}`)))
  })
  const line = JSON.parse(await ready) as {
    control_url: string
    gateway_url: string
    platform_key: string
    data: string
  }

  const pid = async (service: string) => {
    const record = JSON.parse(await readFile(join(data, 'run', `${service}.json`), 'utf8')) as { pid: number }
    return record.pid
  }
  return {
    controlUrl: line.control_url,
    gatewayUrl: line.gateway_url,
    platformKey: line.platform_key,
    data,
    supervisor,
    output: () => ({ stdout, stderr }),
    pid,
    async stop() {
      if (supervisor.exitCode !== null || supervisor.signalCode !== null) return supervisor.exitCode
      const gone = once(supervisor, 'exit') as Promise<[number | null]>
      supervisor.kill('SIGTERM')
      return (await gone)[0]
    },
    async killAll() {
      const groups = await Promise.all(
        (await readdir(join(data, 'run')))
          .filter((file) => file.endsWith('.json'))
          .map((file) => pid(file.slice(0, -5))),
      )
      const gone = once(supervisor, 'exit')
      supervisor.kill('SIGKILL')
      for (const group of groups) {
        try {
          process.kill(-group, 'SIGKILL')
        } catch {
          // The process group had already ended.
        }
      }
      await gone
    },
  }
}

/** Returns a free port whose successor is free too. */
async function freePair(): Promise<number> {
  for (;;) {
    const port = await freePort()
    if (await isFree(port + 1)) return port
  }
}

/** Stops an installation and deletes its data directory. */
export async function removeInstallation(installation: Installation): Promise<void> {
  await installation.stop()
  await rm(installation.data, { recursive: true, force: true })
}
