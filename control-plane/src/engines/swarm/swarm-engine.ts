// The engine of a region whose containers run on several hosts.
import type { Clock } from '../../platform/clock.ts'
import { dockerHost, type DockerAddress } from '../docker/index.ts'
import { createContainerEngine, type Engine } from '../index.ts'
import { swarmHosts } from './swarm-hosts.ts'

/**
 * Creates the engine and sends nothing yet. @param addresses of the hosts' engines, by the IDs of the hosts
 * @throws RangeError for an invalid address; the file system's errors for certificates
 */
export function createSwarmEngine(
  addresses: ReadonlyMap<string, DockerAddress>,
  installation: string,
  clock: Clock,
): Engine {
  const sleep = (milliseconds: number, signal: AbortSignal) => clock.sleep(milliseconds, signal)
  const hosts = swarmHosts({
    hosts: new Map([...addresses].map(([id, address]) => [id, dockerHost(address)])),
    now: () => clock.now().getTime(),
    sleep,
  })
  return createContainerEngine({ name: 'swarm', installation, hosts, sleep })
}
