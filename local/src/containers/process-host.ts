// The host of tenants' own services under `npm start`: it implements the calls that the engine makes to a Docker Engine with
// directories and child processes. It takes no decisions.
import { randomBytes } from 'node:crypto'
import { lstat, mkdir, rm, statfs } from 'node:fs/promises'
import { availableParallelism, hostname, totalmem } from 'node:os'
import { join } from 'node:path'
import { ConfigurationError, replaceFile } from '@tenantry/contract'
import { Value } from 'typebox/value'
import {
  type ContainerHost,
  type ContainerSpec,
  EngineError,
  type ExecOptions,
  type HostEvent,
  type ObservedContainer,
  restartPolicy,
} from '../../../control-plane/src/engines/index.ts'
import type { PostgresBinaries } from '../process/postgres-files.ts'
import type { RunRecords } from '../process/run-records.ts'
import { setOwner, type Identity } from '../process/unprivileged.ts'
import { BoundedQueue } from './bounded-queue.ts'
import { ContainerLog } from './container-log.ts'
import { ContainerProcess, type Launch } from './container-process.ts'
import { ContainerRecord } from './container-record.ts'
import { execInside, startInside, streamInside } from './exec.ts'
import { HostNetworks, HostVolumes, isOwnedBy, readRecords, requireOwned } from './host-objects.ts'
import type { HostPaths } from './host-paths.ts'
import { HostUsers } from './host-users.ts'
import { limitWarnings } from './limits.ts'
import { treeStats } from './process-tree.ts'
import { programDirectories, programEnvironment, programOf, type ProgramOptions } from './programs.ts'
import { ensureTemplate, writeHostBasedAccess } from './template.ts'

export interface ProcessHostOptions {
  paths: HostPaths
  binaries: PostgresBinaries
  /** User of the installation's services; undefined if this process is not root. */
  identity: Identity | undefined
  runs: RunRecords
  programs: Omit<ProgramOptions, 'template' | 'hostBasedAccess'>
}

/** The host, and what the supervisor of an installation does with it. */
export interface ProcessHost extends ContainerHost {
  /** Starts a program in the environment of a running one. */
  start: (container: string, command: readonly string[], options: ExecOptions) => ReturnType<typeof startInside>
  /** Stops all programs in their order. They start again with the installation. */
  close(expedite?: AbortSignal): Promise<void>
}

const maxEvents = 10_000

/** Opens the host, and starts the programs that ran when the installation ended. */
export async function openProcessHost(options: ProcessHostOptions): Promise<ProcessHost> {
  const { paths, identity, binaries } = options
  for (const directory of [paths.root, paths.containers, paths.allSockets])
    await mkdir(directory, { recursive: true, mode: 0o711 })
  for (const directory of [paths.root, paths.allSockets]) await requireOwnDirectory(directory)
  await writeHostBasedAccess({ paths })
  const users = await HostUsers.open(paths.users, identity)
  const [networks, volumes] = await Promise.all([HostNetworks.open(paths), HostVolumes.open(paths)])
  const programs = { ...options.programs, template: paths.template, hostBasedAccess: paths.hostBasedAccess }
  const containers = new Map<string, ContainerProcess>()
  const readers = new Set<BoundedQueue<HostEvent>>()
  let template: Promise<void> | undefined
  let isClosed = false

  const recordFile = (name: string) => join(paths.container(name), 'container.json')

  const launchOf = ({ spec, user }: ContainerRecord): Launch => {
    const program = programOf(spec.image)
    if (program === undefined)
      throw new EngineError('IMAGE_MISSING', `The image "${spec.image}" does not exist on the host.`)
    const data = (name: string) => paths.volumeData(name)
    const directory = join(paths.container(spec.name), 'work')
    const location = {
      address: spec.networks[0]?.address ?? '127.0.0.1',
      directories: Object.fromEntries(spec.volumes.map(({ volume, path }) => [path, data(volume)])),
      sockets: paths.sockets(user),
      work: directory,
    }
    return {
      command: program.command(spec),
      environment: programEnvironment(program, spec, programs, location),
      directory,
      ownDirectories: [directory, ...spec.volumes.map(({ volume }) => data(volume))],
      needs: [...programDirectories(programs), paths.root, paths.allSockets],
      identity: users.identityOf(user),
      hasOwnUser: users.areSeparate,
      stopSignal: program.stopSignal,
      stopOrder: program.stopOrder,
      memory: program.memory,
    }
  }

  const open = (record: ContainerRecord): ContainerProcess => {
    const { spec } = record
    const opened = new ContainerProcess({
      record,
      launch: () => launchOf(record),
      log: new ContainerLog(paths.container(spec.name)),
      runs: options.runs,
      onEvent(what) {
        for (const reader of readers) reader.push({ stack: spec.labels.stack, what })
      },
      save: () => replaceFile(recordFile(spec.name), JSON.stringify(record), { mode: 0o600 }),
    })
    containers.set(spec.name, opened)
    return opened
  }

  /** Changes of one object happen one after the other. */
  const turns = new Map<string, Promise<unknown>>()
  const inTurn = <T>(name: string, change: () => Promise<T>): Promise<T> => {
    if (isClosed) throw new EngineError('ENGINE_UNREACHABLE', 'The installation stops.')
    const turn = (turns.get(name) ?? Promise.resolve()).then(change, change)
    turns.set(name, turn)
    const end = () => turns.get(name) === turn && turns.delete(name)
    turn.then(end, end)
    return turn
  }

  const found = (name: string): ContainerProcess => {
    const container = containers.get(name)
    if (container === undefined) throw new EngineError('NOT_FOUND', `Cannot find container ${name}: it does not exist.`)
    return container
  }

  const running = (name: string): ContainerProcess => {
    const container = found(name)
    if (container.state !== 'running') throw new EngineError('ENGINE_FAILED', `The container ${name} is not running.`)
    return container
  }

  const create = async (spec: ContainerSpec) => {
    const existing = containers.get(spec.name)
    if (existing !== undefined) {
      requireOwned('container', spec.name, existing.record.spec.labels, spec.labels)
      return
    }
    const program = programOf(spec.image)
    if (program?.component === 'postgres')
      await (template ??= ensureTemplate({ paths, binaries, identity }).catch((error: unknown) => {
        template = undefined
        throw error
      }))
    const user = await users.numberOf(spec.labels.stack, spec.user)
    const own = users.identityOf(user)
    for (const { volume } of spec.volumes) await volumes.own(volume, own)
    const record = Value.Parse(ContainerRecord, {
      id: randomBytes(16).toString('hex'),
      spec,
      user,
      isStarted: false,
      createdAt: new Date().toISOString(),
      exitCode: 0,
    })
    const launch = launchOf(record)
    await mkdir(paths.container(spec.name), { recursive: true, mode: 0o711 })
    for (const directory of [launch.directory, paths.sockets(user)]) {
      await mkdir(directory, { recursive: true, mode: 0o700 })
      await setOwner(directory, own)
    }
    await replaceFile(recordFile(spec.name), JSON.stringify(record), { mode: 0o600 })
    open(record)
  }

  const remove = async (name: string, owner: Parameters<ContainerHost['removeContainer']>[1]) => {
    const container = containers.get(name)
    if (container === undefined) return
    const { labels } = container.record.spec
    requireOwned('container', name, labels, owner)
    await container.stop(0)
    containers.delete(name)
    await rm(paths.container(name), { recursive: true, force: true })
    await releaseUsers(labels.stack)
  }

  /** Frees the users of a stack, when nothing of it is left. */
  const releaseUsers = async (stack: string) => {
    const stacks = [...containers.values()].map(({ record }) => record.spec.labels.stack)
    if (stacks.includes(stack) || (await volumes.all()).some(({ labels }) => labels.stack === stack)) return
    for (const user of await users.release(stack)) await rm(paths.sockets(user), { recursive: true, force: true })
  }

  const observed = ({ record, state, health, restarts }: ContainerProcess): ObservedContainer => ({
    id: record.id,
    name: record.spec.name,
    labels: record.spec.labels,
    state,
    health,
    exitCode: state === 'exited' ? record.exitCode : 0,
    startedAt: record.startedAt,
    createdAt: record.createdAt ?? record.startedAt ?? new Date(0).toISOString(),
    restarts,
    outOfMemory: false,
    imageId: programOf(record.spec.image)?.id ?? record.spec.image,
    resources: record.spec.resources,
    restartPolicy,
    networks: Object.fromEntries(
      record.spec.networks.map(({ network, aliases, address = '' }) => [network, { aliases, address }]),
    ),
  })

  /** Changes the record of a container. */
  const change = async (name: string, apply: (record: ContainerRecord) => void) => {
    const { record } = found(name)
    apply(record)
    await replaceFile(recordFile(name), JSON.stringify(record), { mode: 0o600 })
  }

  const write = async (isWhole: boolean, [volume, , user, files, labels]: Parameters<ContainerHost['writeFiles']>) => {
    const number = await users.numberOf(labels.stack, user)
    await volumes.write(volume, files, users.identityOf(number), isWhole)
  }

  const close = async (expedite?: AbortSignal) => {
    isClosed = true
    await Promise.allSettled(turns.values())
    const all = [...containers.values()]
    const orders = [...new Set(all.map(({ launch }) => launch.stopOrder))].sort((a, b) => a - b)
    const stops: Promise<void>[] = []
    for (const order of orders) {
      const together = all.filter(({ launch }) => launch.stopOrder === order)
      stops.push(...together.map((one) => one.stop(one.record.spec.stopSeconds, expedite, false)))
      await Promise.allSettled(stops)
    }
    // Reports the first failure when all others have stopped.
    await Promise.all(stops)
  }

  try {
    for (const record of (await readRecords(paths.containers, ContainerRecord, recordFile)).values()) {
      const container = open(record)
      // One that fails is reported as stopped, and the others start.
      if (record.isStarted) await container.start().catch((error: unknown) => container.noteFailure(error))
    }
  } catch (error) {
    await close().catch(() => undefined)
    throw error
  }

  return {
    async info() {
      const disk = await statfs(paths.root)
      return {
        name: hostname(),
        apiVersion: '1',
        memoryBytes: totalmem(),
        cpus: availableParallelism(),
        disk: { freeBytes: disk.bavail * disk.bsize, totalBytes: disk.blocks * disk.bsize },
        warnings: limitWarnings(users.areSeparate),
      }
    },

    async observe(owned) {
      const all = [...containers.values()].filter(({ record }) => isOwnedBy(record.spec.labels, owned))
      const members = (network: string) =>
        all
          .filter(({ record }) => record.spec.networks.some((attached) => attached.network === network))
          .map(({ record }) => record.spec.name)
      return {
        containers: all.map(observed),
        networks: networks
          .all()
          .filter(({ labels }) => isOwnedBy(labels, owned))
          .map(({ name, labels, subnet, internal }) => ({
            id: name,
            name,
            labels,
            subnet,
            internal,
            members: members(name),
            addresses: {},
          })),
        volumes: (await volumes.all()).filter(({ labels }) => isOwnedBy(labels, owned)),
        unlabelledVolumes: [],
      }
    },

    image: (reference) => {
      const program = programOf(reference)
      return Promise.resolve(program && { id: program.id, component: program.component })
    },

    createNetwork: (spec) => inTurn('networks', () => networks.create(spec)),
    createVolume: (spec) => inTurn(spec.name, () => volumes.create(spec)),
    createContainer: (spec) => inTurn(spec.name, () => create(spec)),
    startContainer: (name) => inTurn(name, () => found(name).start()),
    // No program is ever paused.
    unpauseContainer: (name) => inTurn(name, () => Promise.resolve(void found(name))),
    stopContainer: (name, seconds) => inTurn(name, () => found(name).stop(seconds)),

    updateResources: (name, { restartPolicy: _, ...resources }) =>
      inTurn(name, async () => {
        await change(name, ({ spec }) => (spec.resources = { ...spec.resources, ...resources }))
        await found(name).limit()
      }),

    connect: (network, name, aliases, address) =>
      inTurn(name, () =>
        change(name, ({ spec }) => {
          spec.networks = [
            ...spec.networks.filter((attached) => attached.network !== network),
            { network, aliases: [...aliases], ...(address === undefined ? {} : { address }) },
          ]
        }),
      ),

    disconnect: (network, name) =>
      inTurn(name, () =>
        change(name, ({ spec }) => {
          spec.networks = spec.networks.filter((attached) => attached.network !== network)
        }),
      ),

    writeFiles: (...values) => inTurn(values[0], () => write(true, values)),
    addFiles: (...values) => inTurn(values[0], () => write(false, values)),
    removeContainer: (name, owner) => inTurn(name, () => remove(name, owner)),
    removeNetwork: (name, owner) => inTurn('networks', () => networks.remove(name, owner)),

    removeVolume: (name, owner) =>
      inTurn(name, async () => {
        const labels = await volumes.labels(name)
        if (labels === undefined) return
        requireOwned('volume', name, labels, owner)
        const isUsed = ({ record }: ContainerProcess) => record.spec.volumes.some(({ volume }) => volume === name)
        if ([...containers.values()].some(isUsed))
          throw new EngineError('ENGINE_FAILED', `Cannot remove volume ${name}: it is in use.`)
        await volumes.remove(name)
        await releaseUsers(labels.stack)
      }),

    removeUnlabelledVolume: (name) =>
      Promise.reject(new EngineError('FOREIGN_OBJECT', `The volume "${name}" does not belong to Tenantry.`)),

    start: async (name, command, how) => startInside(running(name), command, how),
    exec: async (name, command, how) => execInside(running(name), command, how),
    execStream: (name, command, how) => streamInside(running(name), command, how),
    logs: (name, how, signal) => found(name).log.lines(how, signal),

    stats: (name) => {
      const { pid } = running(name)
      if (pid === undefined) throw new EngineError('ENGINE_FAILED', `The container ${name} is not running.`)
      return treeStats(pid)
    },

    volumeBytes: (owned) => volumes.bytes(owned),

    async *events(owned, signal) {
      const reader = new BoundedQueue<HostEvent>(maxEvents, signal)
      readers.add(reader)
      try {
        for await (const event of reader.values())
          if (owned.stack === undefined || owned.stack === event.stack) yield event
      } finally {
        readers.delete(reader)
      }
    },

    close,
  }
}

/**
 * Requires that no other user can replace the content of a directory, because root trusts it.
 * @throws ConfigurationError if the directory is a link or belongs to another user
 */
async function requireOwnDirectory(path: string): Promise<void> {
  const found = await lstat(path)
  if (!found.isDirectory() || found.uid !== process.getuid?.())
    throw new ConfigurationError(
      `${JSON.stringify(path)} must be a directory that belongs to the user that starts the installation.`,
    )
}
