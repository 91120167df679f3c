// The hosts of a region with several: which of its parts can be reached, and how much memory is free.
import { type Engine, type HostInfo, isSilentHost } from '../engines/index.ts'
import type { HostCapacity } from '../placement/index.ts'
import type { RegionConfig } from '../regions/index.ts'
import { hostsOf, type Service } from '../stacks/index.ts'

/** Returns what concerns the hosts of a region. A region with one host has none of them by ID. */
export function regionHosts({ docker, hostByUrl }: RegionConfig, engine: Engine | undefined) {
  const hosts = docker === undefined ? [] : hostsOf(docker)

  /** Reads a host; undefined if it does not respond. */
  const infoOf = async (id: string, signal: AbortSignal): Promise<HostInfo | undefined> => {
    try {
      return await engine?.info(signal, id)
    } catch (error) {
      if (isSilentHost(error)) return undefined
      throw error
    }
  }

  return {
    /** Leaves out the URLs of hosts that do not respond, unless none does. */
    reachable(urls: readonly string[]): readonly string[] {
      const up = urls.filter((url) => engine?.isDown(hostByUrl?.get(url) ?? '') !== true)
      return up.length === 0 ? urls : up
    },

    /**
     * Returns the hosts that respond, with the memory that is not reserved.
     * @param own services of the region itself
     * @param reserved memory that tenants' services reserve, by host
     */
    async capacities(
      own: readonly Service[],
      reserved: ReadonlyMap<string, number>,
      signal: AbortSignal,
    ): Promise<HostCapacity[]> {
      const infos = await Promise.all(hosts.map(({ id }) => infoOf(id, signal)))
      return hosts.flatMap(({ id, zone }, at): HostCapacity[] => {
        const info = infos[at]
        if (info === undefined) return []
        const used = own
          .filter(({ host }) => host === id)
          .reduce((sum, { resources }) => sum + resources.memoryBytes, reserved.get(id) ?? 0)
        return [{ id, zone, freeBytes: info.memoryBytes - used }]
      })
    },
  }
}
