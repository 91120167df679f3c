// The Docker Engine of a test run: the one that TENANTRY_DOCKER_HOST names, the project's own (as root), or the machine's.
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import Docker from 'dockerode'
import { DataDirectoryInUse, lockDataDirectory } from '../local/src/process/data-lock.ts'
import {
  dockerSocket,
  endDaemon,
  engineDirectory,
  startDaemons,
  stopDaemons,
  type Daemon,
  type EngineSettings,
} from './engine/daemons.ts'
import { ensureInstalled } from './engine/install.ts'

const oldestApi = [1, 41] as const
const machinesSocket = '/var/run/docker.sock'
const waitMilliseconds = 180_000
const callMilliseconds = 10_000

export interface Engine {
  /** For TENANTRY_DOCKER_HOST. */
  host: string
  docker: Docker
  /** Ends it where this process has started it. */
  stop(): Promise<void>
  /** Whether it is the project's own engine, which tests may end. */
  isOwn: boolean
  /**
   * Ends dockerd in its own time, unless it is gone already, and starts it again, and containerd where it is gone, too.
   * @throws Error for an engine that is not the project's
   */
  restart(settings?: EngineSettings): Promise<void>
  /** Ends these daemons as a crash does; without a word dockerd alone. @throws Error for an engine that is not the project's */
  kill(...daemons: readonly Daemon[]): Promise<void>
}

const project = dirname(import.meta.dirname)

/**
 * An engine that answers and is new enough. Whoever starts it stops it; a run beside that one uses it, too.
 * @throws Error that says what to do when there is none
 */
export async function ensureEngine(): Promise<Engine> {
  const directory = engineDirectory(project)
  const own = `unix://${dockerSocket(directory)}`
  const named = process.env['TENANTRY_DOCKER_HOST'] ?? ''
  if (named !== '')
    return checked(named === own ? projectsEngine(directory, async () => undefined) : foreignEngine(named))
  if (process.platform === 'linux' && process.getuid?.() === 0) return startOwn(directory)
  try {
    return await checked(foreignEngine(`unix://${machinesSocket}`))
  } catch (cause) {
    throw new Error(
      `the tests need a Docker Engine: ${machinesSocket} does not answer, and only root on Linux can start one. ` +
        'Start it, run as root, or set TENANTRY_DOCKER_HOST.',
      { cause },
    )
  }
}

async function startOwn(directory: string): Promise<Engine> {
  await ensureInstalled()
  await mkdir(directory, { recursive: true, mode: 0o711 })
  const unlock = await lock(directory)
  if (unlock === undefined) return startedByAnother(directory)
  try {
    await startDaemons(directory)
    const engine = await checked(
      projectsEngine(directory, async () => {
        await stopDaemons(directory)
        await unlock()
      }),
    )
    await empty(engine.docker)
    return engine
  } catch (cause) {
    await stopDaemons(directory)
    await unlock()
    throw cause
  }
}

/** Undefined while another run holds it. */
async function lock(directory: string): Promise<(() => Promise<void>) | undefined> {
  try {
    return await lockDataDirectory(directory)
  } catch (cause) {
    if (cause instanceof DataDirectoryInUse) return undefined
    throw cause
  }
}

async function startedByAnother(directory: string): Promise<Engine> {
  const deadline = performance.now() + waitMilliseconds
  for (;;) {
    try {
      return await checked(projectsEngine(directory, async () => undefined))
    } catch (cause) {
      if (performance.now() > deadline)
        throw new Error('the engine that another run of this project has started does not answer', { cause })
      await sleep(200)
    }
  }
}

/** What an earlier run left behind would come up again; images are kept. */
async function empty(docker: Docker): Promise<void> {
  for (const { Id: id } of await docker.listContainers({ all: true }))
    await docker.getContainer(id).remove({ force: true, v: true })
  const { Volumes: volumes } = await docker.listVolumes()
  for (const { Name: name } of volumes) await docker.getVolume(name).remove({ force: true })
  await docker.pruneNetworks()
  await docker.pruneImages()
}

function projectsEngine(directory: string, stop: () => Promise<void>): Engine {
  const host = `unix://${dockerSocket(directory)}`
  const docker = dockerAt(host)
  return {
    host,
    docker,
    stop,
    isOwn: true,
    async restart(settings) {
      await endDaemon(directory, 'dockerd', 'SIGTERM')
      await startDaemons(directory, settings)
      await checked(this)
    },
    async kill(...daemons) {
      for (const daemon of daemons.length === 0 ? (['dockerd'] as const) : daemons)
        await endDaemon(directory, daemon, 'SIGKILL')
    },
  }
}

function foreignEngine(host: string): Engine {
  const reject = async () => {
    throw new Error(
      `${host} is not the project's own engine; run as root without TENANTRY_DOCKER_HOST for tests that end it`,
    )
  }
  return { host, docker: dockerAt(host), stop: async () => undefined, isOwn: false, restart: reject, kill: reject }
}

/** @param timeout milliseconds that an answer may take; without it, any time */
function dockerAt(host: string, timeout?: number): Docker {
  const socketPath = /^unix:\/\/(\/.*)$/.exec(host)?.[1]
  if (socketPath === undefined)
    throw new Error(`TENANTRY_DOCKER_HOST is ${JSON.stringify(host)}; the tests take unix:///… alone`)
  return new Docker({ socketPath, timeout })
}

/** @throws Error for one that does not answer or is too old */
async function checked(engine: Engine): Promise<Engine> {
  const { ApiVersion: api, Version: version } = await dockerAt(engine.host, callMilliseconds)
    .version()
    .catch((cause: unknown) => {
      throw new Error(`no Docker Engine answers at ${engine.host}`, { cause })
    })
  const [major = 0, minor = 0] = api.split('.').map(Number)
  if (major < oldestApi[0] || (major === oldestApi[0] && minor < oldestApi[1])) {
    throw new Error(
      `Docker Engine ${version} at ${engine.host} speaks API ${api}; Tenantry needs ${oldestApi.join('.')} or later`,
    )
  }
  return engine
}
