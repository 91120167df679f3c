// Opens the engine of a region from its configuration.
import { createDockerEngine } from './engines/docker/index.ts'
import type { Engine } from './engines/index.ts'
import { createProcessEngine } from './engines/process/index.ts'
import { createSwarmEngine } from './engines/swarm/index.ts'
import type { Clock } from './platform/clock.ts'
import type { RegionConfig } from './regions/index.ts'

/** Opens a region's engine and sends nothing yet; undefined if the region's parts are started by other means. */
export function openEngine(
  { docker, processes }: Pick<RegionConfig, 'docker' | 'processes'>,
  installation: string,
  clock: Clock,
): Engine | undefined {
  if (docker === undefined) return processes && createProcessEngine(processes.socket, installation, clock)
  const addressOf = ({ host, tls_directory: tlsDirectory }: { host: string; tls_directory?: string }) => ({
    host,
    tlsDirectory,
  })
  if (!('hosts' in docker)) return createDockerEngine(addressOf(docker), installation, clock)
  return createSwarmEngine(new Map(docker.hosts.map((host) => [host.id, addressOf(host)])), installation, clock)
}
