// The Docker Engine of a test run: the one in TENANTRY_DOCKER_HOST, the project's own (as root), or the machine's.
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

const minApiVersion = [1, 41] as const
const machineSocket = '/var/run/docker.sock'
const waitMilliseconds = 180_000
const callMilliseconds = 10_000

export interface Engine {
  /** Value for TENANTRY_DOCKER_HOST. */
  host: string
  docker: Docker
  /** Stops the engine if this process has started it. */
  stop(): Promise<void>
  /** Whether it is the project's own engine, which tests may stop. */
  isOwn: boolean
  /**
   * Stops dockerd gracefully and starts it again, and starts containerd if it has ended.
   * @throws Error for an engine that is not the project's
   */
  restart(settings?: EngineSettings): Promise<void>
  /**
   * Kills these daemons as a crash does; without arguments, dockerd only. @throws Error for an engine that is not the
   * project's
   */
  kill(...daemons: readonly Daemon[]): Promise<void>
}

const project = dirname(import.meta.dirname)

/**
 * Returns an engine that responds and is new enough. The run that starts it stops it; concurrent runs use it, too.
 * @throws Error with a remedy if there is none
 */
export async function ensureEngine(): Promise<Engine> {
  const directory = engineDirectory(project)
  const own = `unix://${dockerSocket(directory)}`
  const named = process.env['TENANTRY_DOCKER_HOST'] ?? ''
  if (named !== '')
    return checked(named === own ? projectsEngine(directory, async () => undefined) : foreignEngine(named))
  if (process.platform === 'linux' && process.getuid?.() === 0) return startOwn(directory)
  try {
    return await checked(foreignEngine(`unix://${machineSocket}`))
  } catch (cause) {
    throw new Error(
      `The tests need a Docker Engine: ${machineSocket} does not respond, and only root on Linux can start one. ` +
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
    await removeAll(engine.docker)
    return engine
  } catch (cause) {
    await stopDaemons(directory)
    await unlock()
    throw cause
  }
}

/** Locks the directory; undefined while another run holds the lock. */
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
        throw new Error('The engine that another run of this project has started does not respond.', { cause })
      await sleep(200)
    }
  }
}

/** Removes the containers, volumes and networks of an earlier run, which would start again. Images stay. */
async function removeAll(docker: Docker): Promise<void> {
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
      `${host} is not the project's own engine. Run tests that stop it as root and without TENANTRY_DOCKER_HOST.`,
    )
  }
  return { host, docker: dockerAt(host), stop: async () => undefined, isOwn: false, restart: reject, kill: reject }
}

/** Opens a client. @param timeout time limit of a response in milliseconds; none if undefined */
function dockerAt(host: string, timeout?: number): Docker {
  const socketPath = /^unix:\/\/(\/.*)$/.exec(host)?.[1]
  if (socketPath === undefined)
    throw new Error(`Invalid TENANTRY_DOCKER_HOST ${JSON.stringify(host)}. Allowed: unix:///….`)
  return new Docker({ socketPath, timeout })
}

/** Checks that an engine responds and is new enough. @throws Error if it does not or is not */
async function checked(engine: Engine): Promise<Engine> {
  const { ApiVersion: api, Version: version } = await dockerAt(engine.host, callMilliseconds)
    .version()
    .catch((cause: unknown) => {
      throw new Error(`No Docker Engine responds at ${engine.host}.`, { cause })
    })
  const [major = 0, minor = 0] = api.split('.').map(Number)
  if (major < minApiVersion[0] || (major === minApiVersion[0] && minor < minApiVersion[1])) {
    throw new Error(
      `The Docker Engine ${version} at ${engine.host} supports API ${api}. Required: ${minApiVersion.join('.')} or later.`,
    )
  }
  return engine
}
