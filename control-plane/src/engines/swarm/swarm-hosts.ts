// The hosts of a region that Docker Swarm joins by networks. Containers run on the hosts as on a single one: the control plane
// decides where. Only the networks belong to the swarm, whose managers create and remove them.
import {
  EngineError,
  isSilentHost,
  type ContainerHost,
  type HostEvent,
  type HostImage,
  type Hosts,
  type ObservedHost,
} from '../index.ts'
import { linkTo, type HostLink, type LinkedHost } from './host-link.ts'
import { mergeObservations } from './merge-observations.ts'
import { mergeStreams } from './merge-streams.ts'

interface SwarmHostsOptions {
  /** The hosts, by their IDs. At least one that responds must be a manager of the swarm when a network is created. */
  hosts: ReadonlyMap<string, LinkedHost>
  /** Returns the time in milliseconds. */
  now: () => number
  sleep: (milliseconds: number, signal: AbortSignal) => Promise<void>
}

const noHost = () => new EngineError('ENGINE_UNREACHABLE', 'No host of the region responds.')

/** Time between two checks whether a host responds again. */
const returnMilliseconds = 5_000

/** Creates the hosts and sends nothing yet. */
export function swarmHosts({ hosts, now, sleep }: SwarmHostsOptions): Hosts {
  const links = new Map([...hosts].map(([id, host]) => [id, linkTo(id, host, now)]))

  /** Returns the hosts that respond. @throws EngineError ENGINE_UNREACHABLE if none does */
  const responding = async (signal: AbortSignal): Promise<{ up: HostLink[]; down: string[] }> => {
    const all = [...links.values()]
    const responds = await Promise.all(all.map((link) => link.responds(signal)))
    const up = all.filter((_, at) => responds[at])
    if (up.length === 0) throw noHost()
    return { up, down: all.filter((_, at) => !responds[at]).map(({ id }) => id) }
  }

  /**
   * Reads from all hosts that respond.
   * @returns the results by host, and the hosts that do not respond
   * @throws EngineError ENGINE_UNREACHABLE if none does
   */
  const readAll = async <T>(read: (host: ContainerHost) => Promise<T>, signal: AbortSignal) => {
    const { up, down } = await responding(signal)
    const found = new Map<string, T>()
    await Promise.all(
      up.map(async ({ id, host }) => {
        try {
          found.set(id, await read(host))
        } catch (error) {
          if (!isSilentHost(error)) throw error
          down.push(id)
        }
      }),
    )
    // What belongs to the swarm is not observed on any host then, and must not be taken for absent.
    if (found.size === 0) throw noHost()
    return { found, down }
  }

  /**
   * Makes a call to the first manager that can carry it out. @throws EngineError ENGINE_UNREACHABLE if no manager responds, and its errors
   */
  const byManager = async (work: (host: ContainerHost) => Promise<void>, signal: AbortSignal): Promise<void> => {
    let failure: unknown
    for (const { host } of (await responding(signal)).up) {
      try {
        await work(host)
        return
      } catch (error) {
        if (!(error instanceof EngineError && error.code === 'NOT_A_MANAGER') && !isSilentHost(error)) throw error
        failure = error
      }
    }
    // The failure of one host means that the work on others is done.
    throw isSilentHost(failure)
      ? new EngineError('ENGINE_UNREACHABLE', 'No manager of the swarm responds.', { cause: failure })
      : failure
  }

  const at: Hosts['at'] = (id) => {
    const link = links.get(id ?? '')
    if (link === undefined)
      throw new EngineError('HOST_UNREACHABLE', `The region has no host "${id ?? ''}" in its configuration.`)
    return link.host
  }

  /** Waits until a host responds again, or the signal aborts. */
  const untilReturn = async (link: HostLink, signal: AbortSignal): Promise<void> => {
    const responds = () => link.responds(signal).catch(() => false)
    while (!signal.aborted && !(await responds())) await sleep(returnMilliseconds, signal).catch(() => undefined)
  }

  return {
    ids: [...links.keys()],
    at,
    isDown: (id) => links.get(id)?.isDown() ?? false,

    async info(signal) {
      const { found } = await readAll((host) => host.info(signal), signal)
      const infos = [...found.values()]
      // What one service can have at most.
      const max = (of: (info: (typeof infos)[number]) => number) => Math.max(...infos.map(of))
      return {
        name: `${infos.length} hosts`,
        apiVersion: infos[0]?.apiVersion ?? '',
        memoryBytes: max(({ memoryBytes }) => memoryBytes),
        cpus: max(({ cpus }) => cpus),
        disk: undefined,
        warnings: [...new Set(infos.flatMap(({ warnings }) => warnings))],
      }
    },

    async observe(owned, signal) {
      const { found, down } = await readAll<ObservedHost>((host) => host.observe(owned, signal), signal)
      return mergeObservations(found, down)
    },

    async image(reference, signal) {
      const { found } = await readAll<HostImage | undefined>((host) => host.image(reference, signal), signal)
      // Always the same one while hosts have different images of one name.
      return [...links.keys()].map((id) => found.get(id)).find((image) => image !== undefined)
    },

    createNetwork: (spec, signal) =>
      byManager((host) => host.createNetwork({ ...spec, spansHosts: true }, signal), signal),

    async removeNetwork(name, owner, signal) {
      const { up } = await responding(signal)
      const disconnect = (link: HostLink) => link.call((host) => host.disconnectAll(name, owner, signal))
      await Promise.all(
        up.map((link) =>
          disconnect(link).catch((error: unknown) => {
            if (!isSilentHost(error)) throw error
          }),
        ),
      )
      await byManager((host) => host.removeNetwork(name, owner, signal), signal)
    },

    async removeUnlabelledVolume(name, signal) {
      await readAll((host) => host.removeUnlabelledVolume(name, signal), signal)
    },

    async volumeBytes(owned, signal) {
      const { found } = await readAll((host) => host.volumeBytes(owned, signal), signal)
      return Object.assign({}, ...found.values()) as Record<string, number>
    },

    async *events(owned, signal) {
      const { up, down } = await responding(signal)
      const absent = [...links.values()].filter(({ id }) => down.includes(id))
      yield* mergeStreams<HostEvent>(
        (until) => ({
          streams: up.map(({ host }) => host.events(owned, until)),
          // The caller reads everything again when a host has returned.
          ends: absent.map((link) => untilReturn(link, until)),
        }),
        signal,
      )
    },
  }
}
