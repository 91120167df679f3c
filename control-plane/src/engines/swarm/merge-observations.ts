// Merges what was observed on several hosts. Pure.
import { memberName, type ObservedHost, type ObservedNetwork } from '../index.ts'

/**
 * Merges observations by host. A network that spans hosts is one network with the containers of all of them.
 * @param found by ID of the host
 * @param unreachableHosts IDs of hosts that did not respond
 */
export function mergeObservations(
  found: ReadonlyMap<string, ObservedHost>,
  unreachableHosts: readonly string[],
): ObservedHost {
  const networks = new Map<string, ObservedNetwork>()
  for (const [host, { networks: own }] of found)
    for (const network of own) {
      const other = networks.get(network.name)
      const nameHere = (container: string) => memberName({ container, host })
      const members = [...(other?.members ?? []), ...network.members.map(nameHere)]
      const here = Object.entries(network.addresses).map(([container, address]) => [nameHere(container), address])
      const addresses = { ...other?.addresses, ...(Object.fromEntries(here) as Record<string, string>) }
      networks.set(network.name, { ...(other ?? network), members, addresses })
    }
  const hosts = [...found]
  return {
    unreachableHosts,
    containers: hosts.flatMap(([host, { containers }]) => containers.map((container) => ({ ...container, host }))),
    networks: [...networks.values()],
    volumes: hosts.flatMap(([host, { volumes }]) => volumes.map((volume) => ({ ...volume, host }))),
    unlabelledVolumes: [...new Set(hosts.flatMap(([, { unlabelledVolumes }]) => unlabelledVolumes))],
  }
}
