// The engine of a region whose containers run on a Docker Engine.
import type { Clock } from '../../platform/clock.ts'
import { createContainerEngine, onlyHost, type Engine } from '../index.ts'
import type { DockerAddress } from './docker-connection.ts'
import { dockerHost } from './docker-host.ts'

/**
 * Creates the engine at an address and sends nothing yet. @throws RangeError for an invalid address; the file system's
 * errors for certificates
 */
export function createDockerEngine(address: DockerAddress, installation: string, clock: Clock): Engine {
  return createContainerEngine({
    name: 'docker',
    installation,
    hosts: onlyHost(dockerHost(address)),
    sleep: (milliseconds, signal) => clock.sleep(milliseconds, signal),
  })
}
