// The two processes of the project's own Docker Engine, containerd and dockerd, with their own directories and sockets.
// /proc shows by their arguments whether they run, so that no record can be wrong.
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

/**
 * Maximum length of the directory's path. The kernel allows 107 bytes for a socket's path, and the engine creates
 * sockets two directories deeper.
 */
const maxDirectoryLength = 64
const startMilliseconds = 60_000
const stopMilliseconds = 60_000
const pingMilliseconds = 5_000
const pollMilliseconds = 25

const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'

export type Daemon = 'containerd' | 'dockerd'

/** Settings in `daemon.json` of a test's engine. */
export interface EngineSettings {
  'live-restore'?: boolean
}

/** Returns the directory of the project's engine, in which its images stay between runs. */
export function engineDirectory(project: string): string {
  const directory = join(project, '.tenantry', 'engine')
  if (directory.length <= maxDirectoryLength) return directory
  return join(tmpdir(), `tenantry-engine-${createHash('sha256').update(project).digest('hex').slice(0, 12)}`)
}

export function dockerSocket(directory: string): string {
  return join(directory, 'docker.sock')
}

/**
 * Starts the daemons that do not run, and returns when they are usable. A running dockerd keeps its settings.
 * @throws Error with the end of the log of a daemon that did not start
 */
export async function startDaemons(directory: string, settings: EngineSettings = {}): Promise<void> {
  await rejectSecondEngine(directory)
  await startDaemon(directory, 'containerd', () => acceptsConnections(containerdSocket(directory)))
  if ((await findDaemon(directory, 'dockerd')) === undefined) await prepareDockerd(directory, settings)
  // dockerd accepts connections long before it responds, and also shortly before it fails.
  await startDaemon(directory, 'dockerd', () => respondsToPing(dockerSocket(directory)))
}

/** Stops the daemons in the order of their dependencies, which also stops the containers. */
export async function stopDaemons(directory: string): Promise<void> {
  await endDaemon(directory, 'dockerd', 'SIGTERM')
  await endDaemon(directory, 'containerd', 'SIGTERM')
  await unmountBelow(directory)
}

/** Ends one daemon and returns when it has ended. */
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

/** Returns the arguments of a daemon. The first one distinguishes the project's own from others. */
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
    // Each network has its own subnet. The default bridge would collide with another engine's.
    '--bridge=none',
  ]
}

/** Writes a settings file, because the machine's own is not for this engine. */
async function prepareDockerd(directory: string, settings: EngineSettings): Promise<void> {
  await writeFile(join(directory, 'daemon.json'), `${JSON.stringify(settings)}\n`)
  // The PID file of a killed dockerd would prevent its start if another process has that PID now.
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

/** Whether a process has ended. Its first thread may end before the last one, which still holds the locks on files. */
async function hasEnded(pid: number): Promise<boolean> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => [])
  return threads.length <= 1 && (await statOf(pid)) === undefined
}

async function findDaemon(directory: string, daemon: Daemon): Promise<number | undefined> {
  const [marker] = argumentsOf(directory, daemon)
  for (const { pid, group, name } of await allProcesses()) {
    // A process that it has just forked also has its name and arguments for a moment, but is in its group.
    if (name === daemon && group === pid && (await commandLineOf(pid)).includes(marker)) return pid
  }
  return undefined
}

/**
 * Rejects a second engine. A Docker Engine that starts removes the firewall rules that separate the networks of another
 * one.
 */
async function rejectSecondEngine(directory: string): Promise<void> {
  const own = await findDaemon(directory, 'dockerd')
  const namespace = await readlink('/proc/self/ns/net')
  for (const { pid, name } of await allProcesses()) {
    if (name !== 'dockerd' || pid === own || (await readlink(`/proc/${pid}/ns/net`).catch(() => '')) !== namespace)
      continue
    throw new Error(
      `A Docker Engine already runs here (process ${pid}), and a second one would remove the firewall rules ` +
        'that separate its networks. Set TENANTRY_DOCKER_HOST to run the tests on it, or stop it.',
    )
  }
}

/**
 * Unmounts directories. A dockerd that was killed and started again leaves the mount of its data directory, which
 * cannot be removed.
 */
async function unmountBelow(directory: string): Promise<void> {
  const points = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').map((line) => line.split(' ')[4] ?? '')
  for (const point of points.filter((at) => at.startsWith(`${directory}/`)).reverse()) await run('umount', [point])
}

async function acceptsConnections(socket: string): Promise<boolean> {
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
  const ping = request({ socketPath, path: '/_ping', signal: AbortSignal.timeout(pingMilliseconds) }).end()
  try {
    const [response] = (await once(ping, 'response')) as [IncomingMessage]
    return response.statusCode === 200
  } catch {
    return false
  } finally {
    ping.on('error', () => undefined).destroy()
  }
}

function logOf(directory: string, daemon: Daemon): string {
  return join(directory, `${daemon}.log`)
}
