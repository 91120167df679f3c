// Runs a whole installation (`npm start -- --json`) for a test or a benchmark.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { controlDatabase } from '#local/control-database.ts'
import { socketPorts, socketUrl } from '#local/process/postgres-socket.ts'
import { isFree } from '#local/process/ports.ts'
import { allProcesses } from '#local/process/process-identity.ts'
import { asIdentity, type Identity } from '#local/process/unprivileged.ts'
import { freePort, query } from './postgres.ts'

export interface Installation {
  controlUrl: string
  gatewayUrl: string
  platformKey: string
  data: string
  /** The process that was started: with `--respawn`, the parent of the supervisor. */
  supervisor: ChildProcess
  /** The output of the supervisor so far. */
  output(): { stdout: string; stderr: string }
  /** Pid of a service: `postgres`, `control-database`, `control-plane`, `runtime-0` and so on, `gateway`, `gateway-1`. */
  pid(service: string): Promise<number>
  /** Returns the names of the runtimes' services, by their numbers. */
  runtimes(): Promise<string[]>
  /** Stops the installation with SIGTERM. @returns the exit code */
  stop(): Promise<number | null>
  /** Kills the supervisor and all services with SIGKILL. */
  killAll(): Promise<void>
}

export interface InstallationOptions {
  dataDirectory?: string
  port?: number
  /** Number of runtimes. */
  runtimes?: number
  /** Number of gateways; 1 by default, on any machine. */
  gateways?: number
  /** Number of homes that are made in advance; 0 by default, because tests compare what exists with their tenants. */
  warmHomes?: number
  environment?: Record<string, string>
  logLevel?: string
  /** Starts the installation with `--watch`. */
  watch?: boolean
  /** Starts the installation with `--respawn`. */
  respawn?: boolean
  /** File of the master key, with which the installation starts with `--recover`. */
  recover?: string
  /** User that runs the installation; the data directory must belong to this user. */
  user?: Identity
}

const project = new URL('../../', import.meta.url).pathname.replace(/\/$/, '')
const entry = join(project, 'local/src/start.ts')

/** Starts an installation and waits until it is ready. @throws Error with the end of the log when it ends before that */
export async function startInstallation(options: InstallationOptions = {}): Promise<Installation> {
  const data = options.dataDirectory ?? join(await mkdtemp(join(tmpdir(), 'tenantry-installation-')), 'data')
  const port = options.port ?? (await freePair())
  const started = {
    command: process.execPath,
    args: [
      entry,
      '--json',
      '--data',
      data,
      '--port',
      String(port),
      ...(options.logLevel === undefined ? [] : ['--log-level', options.logLevel]),
      ...(options.runtimes === undefined ? [] : ['--runtimes', String(options.runtimes)]),
      '--gateways',
      String(options.gateways ?? 1),
      '--warm-homes',
      String(options.warmHomes ?? 0),
      ...(options.watch === true ? ['--watch'] : []),
      ...(options.respawn === true ? ['--respawn'] : []),
      ...(options.recover === undefined ? [] : ['--recover', options.recover]),
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
    supervisor.once('exit', (code) => reject(new Error(`the installation ended with ${code}:\n${causesIn(stderr)}`)))
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
    async runtimes() {
      const [region] = JSON.parse(await readFile(join(data, 'regions.json'), 'utf8')) as { runtime_urls: string[] }[]
      return (region?.runtime_urls ?? []).map((_, number) => `runtime-${number}`)
    },
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

/** Returns the PID of a service of a tenant's own, as the installation has recorded it. @throws Error without a record */
export async function ownPid({ data }: Pick<Installation, 'data'>, tenantId: string, service: string): Promise<number> {
  const file = (await readdir(join(data, 'run'))).find((name) => name.startsWith(`tenantry-${tenantId}-${service}-`))
  if (file === undefined) throw new Error(`There is no record of ${service}.`)
  return (JSON.parse(await readFile(join(data, 'run', file), 'utf8')) as { pid: number }).pid
}

/** Runs SQL in the control database of an installation, as its superuser. */
export async function controlSql(
  { data }: Pick<Installation, 'data'>,
  text: string,
): Promise<Record<string, unknown>[]> {
  const password = (await readFile(join(data, 'secrets/postgres-password'), 'utf8')).trim()
  const server = { sockets: join(data, 'sockets'), port: socketPorts.controlDatabase, password }
  return query(socketUrl(server, controlDatabase), text)
}

/** Returns the errors in the log of an installation, or its last lines if it has none. */
function causesIn(log: string): string {
  const lines = log.split('\n')
  const errors = lines.filter((line) => /^\{"level":[56]0/.test(line) || /Error: /.test(line))
  return (errors.length > 0 ? errors.slice(0, 20) : lines.slice(-20)).join('\n')
}

/** Returns the processes whose working directory is in the data directory. */
export async function processesOf(data: string): Promise<string[]> {
  const found: string[] = []
  for (const { pid, name } of await allProcesses()) {
    const directory = await readlink(`/proc/${pid}/cwd`).catch(() => '')
    if (directory.startsWith(data)) found.push(`${name} ${pid}`)
  }
  return found
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
