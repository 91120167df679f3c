// The hosts of an engine. Most engines have one; the engine `swarm` has several.
import type { ContainerHost } from './container-host.ts'

/** The calls that concern all hosts of an engine, and the way to a single one. All throw `EngineError`. */
export interface Hosts extends Pick<
  ContainerHost,
  'info' | 'observe' | 'image' | 'createNetwork' | 'removeNetwork' | 'removeUnlabelledVolume' | 'volumeBytes' | 'events'
> {
  /** IDs of the hosts; none for an engine with one host. */
  readonly ids: readonly string[]
  /**
   * Returns one host. @param id undefined on an engine with one host
   * @throws EngineError HOST_UNREACHABLE by its calls if only this host does not respond
   */
  at(id: string | undefined): ContainerHost
  /** Whether a host of several did not respond at the last call. */
  isDown(id: string): boolean
}

/** Returns the hosts of an engine with one host. */
export function onlyHost(host: ContainerHost): Hosts {
  return {
    ids: [],
    at: () => host,
    isDown: () => false,
    info: (signal) => host.info(signal),
    observe: (owned, signal) => host.observe(owned, signal),
    image: (reference, signal) => host.image(reference, signal),
    createNetwork: (spec, signal) => host.createNetwork(spec, signal),
    removeNetwork: (name, owner, signal) => host.removeNetwork(name, owner, signal),
    removeUnlabelledVolume: (name, signal) => host.removeUnlabelledVolume(name, signal),
    volumeBytes: (owned, signal) => host.volumeBytes(owned, signal),
    events: (owned, signal) => host.events(owned, signal),
  }
}
