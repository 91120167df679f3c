// The two processes of a Docker Engine of our own, containerd and dockerd, on directories and sockets of their own.
// Whether they run is seen in /proc by their arguments, so that nothing written down can be wrong about it.
import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { open, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { request, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { signalProcess } from '../../local/src/process/process-group.ts'
import { allProcesses, commandLineOf, statOf } from '../../local/src/process/process-identity.ts'

const run = promisify(execFile)

/** The kernel takes 107 bytes for a socket's path, and the engine makes sockets of its own two directories deeper. */
const maxDirectoryLength = 64
const startMilliseconds = 60_000
const stopMilliseconds = 60_000
const pingMilliseconds = 5_000
const pollMilliseconds = 25

const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export type Daemon = 'containerd' | 'dockerd'

/** What `daemon.json` of a test's engine may say. */
export interface EngineSettings {
  'live-restore'?: boolean
}

/** Where the project's engine lives. Its images stay there between runs. */
export function engineDirectory(project: string): string {
  const directory = join(project, '.tenantry', 'engine')
  if (directory.length <= maxDirectoryLength) return directory
  return join(tmpdir(), `tenantry-engine-${createHash('sha256').update(project).digest('hex').slice(0, 12)}`)
}

export function dockerSocket(directory: string): string {
  return join(directory, 'docker.sock')
}

/**
 * Starts what does not run; returns when it can be used. A dockerd that runs already keeps its settings.
 * @throws Error with the end of the log of what did not start
 */
export async function startDaemons(directory: string, settings: EngineSettings = {}): Promise<void> {
  await rejectSecondEngine(directory)
  await startDaemon(directory, 'containerd', () => takesConnections(containerdSocket(directory)))
  if ((await findDaemon(directory, 'dockerd')) === undefined) await prepareDockerd(directory, settings)
  // It takes connections long before it answers, and also when it is about to give up.
  await startDaemon(directory, 'dockerd', () => respondsToPing(dockerSocket(directory)))
}

/** In the order in which they need each other; containers are stopped. */
export async function stopDaemons(directory: string): Promise<void> {
  await endDaemon(directory, 'dockerd', 'SIGTERM')
  await endDaemon(directory, 'containerd', 'SIGTERM')
  await unmountBelow(directory)
}

/** Ends one daemon alone; returns when it is gone. */
export async function endDaemon(directory: string, daemon: Daemon, signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  const pid = await findDaemon(directory, daemon)
  if (pid === undefined) return
  signalProcess(pid, signal)
  const deadline = performance.now() + stopMilliseconds
  while (!(await hasEnded(pid))) {
    if (performance.now() > deadline) signalProcess(pid, 'SIGKILL')
    await sleep(pollMilliseconds)
  }
}

function containerdSocket(directory: string): string {
  return join(directory, 'containerd.sock')
}

/** The first argument tells ours from others. */
function argumentsOf(directory: string, daemon: Daemon): [string, ...string[]] {
  if (daemon === 'containerd') {
    return [
      `--root=${join(directory, 'containerd')}`,
      `--state=${join(directory, 'containerd-state')}`,
      `--address=${containerdSocket(directory)}`,
      `--config=${join(directory, 'containerd.toml')}`,
    ]
  }
  return [
    `--data-root=${join(directory, 'data')}`,
    `--exec-root=${join(directory, 'exec')}`,
    `--pidfile=${join(directory, 'docker.pid')}`,
    `--config-file=${join(directory, 'daemon.json')}`,
    `--containerd=${containerdSocket(directory)}`,
    `--host=unix://${dockerSocket(directory)}`,
    // Every network is made with a subnet of its own; the usual bridge would clash with another engine's.
    '--bridge=none',
  ]
}

/** Writes a file of settings, because those of the machine are not for this engine. */
async function prepareDockerd(directory: string, settings: EngineSettings): Promise<void> {
  await writeFile(join(directory, 'daemon.json'), `${JSON.stringify(settings)}\n`)
  // A pid file that a kill left would keep it from starting when the number is another process' now.
  await rm(join(directory, 'docker.pid'), { force: true })
}

async function startDaemon(directory: string, daemon: Daemon, isReady: () => Promise<boolean>): Promise<void> {
  if ((await findDaemon(directory, daemon)) === undefined) {
    if (daemon === 'containerd')
      await writeFile(
        join(directory, 'containerd.toml'),
        'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n',
      )
    const log = await open(logOf(directory, daemon), 'w')
    const child = spawn(daemon, argumentsOf(directory, daemon), {
      cwd: '/',
      detached: true,
      stdio: ['ignore', log.fd, log.fd],
      env: { PATH: path },
    })
    child.unref()
    await Promise.race([
      once(child, 'spawn'),
      once(child, 'error').then(([error]: unknown[]) => Promise.reject(error as Error)),
    ])
    await log.close()
  }
  const deadline = performance.now() + startMilliseconds
  while (!(await isReady())) {
    if (performance.now() > deadline || (await findDaemon(directory, daemon)) === undefined) {
      throw new Error(`${daemon} did not start:\n${(await readFile(logOf(directory, daemon), 'utf8')).slice(-4_000)}`)
    }
    await sleep(pollMilliseconds)
  }
}

/** The first thread may be gone before the last, which still holds the locks on the process' files. */
async function hasEnded(pid: number): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => [])
  return threads.length <= 1 && (await statOf(pid)) === undefined
}

async function findDaemon(directory: string, daemon: Daemon): Promise<number | undefined> {
  const [marker] = argumentsOf(directory, daemon)
  for (const { pid, group, name } of await allProcesses()) {
    // What it has just forked has its name and arguments too, for a moment, but is in its group.
    if (name === daemon && group === pid && (await commandLineOf(pid)).includes(marker)) return pid
  }
  return undefined
}

/** A Docker Engine that starts removes the firewall rules that keep the networks of another one apart. */
async function rejectSecondEngine(directory: string): Promise<void> {
  const own = await findDaemon(directory, 'dockerd')
  const namespace = await readlink('/proc/self/ns/net')
  for (const { pid, name } of await allProcesses()) {
    if (name !== 'dockerd' || pid === own || (await readlink(`/proc/${pid}/ns/net`).catch(() => '')) !== namespace)
      continue
    throw new Error(
      `a Docker Engine runs here already (process ${pid}), and a second one would remove the firewall rules ` +
        'that keep its networks apart. Name it in TENANTRY_DOCKER_HOST to run the tests on it, or stop it.',
    )
  }
}

/** A dockerd that was killed and started again leaves the mount of its data directory behind, and nobody can remove that. */
async function unmountBelow(directory: string): Promise<void> {
  const points = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').map((line) => line.split(' ')[4] ?? '')
  for (const point of points.filter((at) => at.startsWith(`${directory}/`)).reverse()) await run('umount', [point])
}

async function takesConnections(socket: string): Promise<boolean> {
  const connection = connect(socket)
  try {
    await once(connection, 'connect')
    return true
  } catch {
    return false
  } finally {
    connection.destroy()
  }
}

async function respondsToPing(socketPath: string): Promise<boolean> {
  const requested = request({ socketPath, path: '/_ping', signal: AbortSignal.timeout(pingMilliseconds) }).end()
  try {
    const [response] = (await once(requested, 'response')) as [IncomingMessage]
    return response.statusCode === 200
  } catch {
    return false
  } finally {
    requested.on('error', () => undefined).destroy()
  }
}

function logOf(directory: string, daemon: Daemon): string {
  return join(directory, `${daemon}.log`)
}
