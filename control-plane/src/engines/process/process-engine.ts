// The engine of a region whose tenants' own services are processes of `npm start`.
import type { Clock } from '../../platform/clock.ts'
import { createContainerEngine, onlyHost, type Engine } from '../index.ts'
import { processHost } from './host-client.ts'

/** Creates the engine over the socket of a host of processes, and sends nothing yet. */
export function createProcessEngine(socket: string, installation: string, clock: Clock): Engine {
  return createContainerEngine({
    name: 'process',
    installation,
    hosts: onlyHost(processHost(socket)),
    sleep: (milliseconds, signal) => clock.sleep(milliseconds, signal),
  })
}
