// Removes stacks, or services of one, from the hosts that respond.
import { volumeName } from '../stacks/index.ts'
import type { ContainerHost, Labels, Ownership } from './container-host.ts'
import type { Engine } from './engine.ts'
import { EngineError, isSilentHost } from './engine-error.ts'
import type { Hosts } from './hosts.ts'
import { memberName } from './member-name.ts'
import { settleAll } from './settle-all.ts'

/** An object on its host; without one on an engine with a single host. */
interface OnHost {
  name: string
  host?: string
}

/**
 * Creates the removals of an engine.
 * @param owner returns the labels of the objects of a stack
 */
export function createRemoval(
  hosts: Hosts,
  owner: (stackId: string) => Ownership & { stack: string },
): Pick<Engine, 'remove' | 'removeServices'> {
  /** Removes objects from their hosts. What is on a host that does not respond, or not any more, stays there. */
  const removeEach = <T extends OnHost>(
    objects: readonly T[],
    silent: Set<string>,
    remove: (host: ContainerHost, object: T) => Promise<void>,
  ) =>
    settleAll(
      objects
        .filter(({ host = '' }) => !silent.has(host))
        .map((object) => remove(hosts.at(object.host), object).catch(unlessSilent(object.host, silent))),
    )

  return {
    async remove(stackId, signal, edge = () => undefined) {
      const observed = await hosts.observe(owner(stackId), signal)
      const { containers, networks, volumes, unlabelledVolumes, unreachableHosts = [] } = observed
      const silent = new Set(unreachableHosts)
      await removeEach(containers, silent, (host, { name }) => host.removeContainer(name, owner(stackId), signal))
      await edge('after')
      await removeEach(volumes, silent, (host, { name }) => host.removeVolume(name, owner(stackId), signal))
      await settleAll(
        unlabelledVolumes.map((volume) => hosts.removeUnlabelledVolume(volume, signal).catch(unlessForeign)),
      )
      await edge('after')
      // A network may be in use by a container on a host that does not respond.
      const unlessInUse = (error: unknown) => {
        if (silent.size === 0 || !(error instanceof EngineError) || error.code !== 'ENGINE_FAILED') throw error
      }
      await settleAll(networks.map(({ name }) => hosts.removeNetwork(name, owner(stackId), signal).catch(unlessInUse)))
      await edge('after')
      const [unreachable] = silent
      if (unreachable !== undefined)
        throw new EngineError('HOST_UNREACHABLE', `The host "${unreachable}" may still have objects of the stack.`, {
          missedHosts: [...silent],
        })
    },

    async removeServices(stackId, { services, volumes, attachedContainers }, signal, edge = () => Promise.resolve()) {
      const observed = await hosts.observe(owner(stackId), signal)
      const silent = new Set(observed.unreachableHosts)
      const isOf = ({ labels }: { labels: Labels }) => services.includes(labels.service ?? '')
      const containers = observed.containers.filter(isOf)
      await edge()
      await removeEach(containers, silent, (host, { name }) => host.removeContainer(name, owner(stackId), signal))
      const detached = observed.networks.flatMap(({ name: network, members }) =>
        attachedContainers
          .filter((attached) => members.includes(memberName(attached)))
          .map(({ container, ...host }) => ({ network, name: container, ...host })),
      )
      await removeEach(detached, silent, (host, { network, name }) => host.disconnect(network, name, signal))
      const names = volumes.map((volume) => volumeName(stackId, volume))
      const removed = observed.volumes.filter((volume) => isOf(volume) || names.includes(volume.name))
      await edge()
      await removeEach(removed, silent, (host, { name }) => host.removeVolume(name, owner(stackId), signal))
      return [...silent].sort()
    },
  }
}

/** Notes that a host does not respond. Other errors are thrown. */
function unlessSilent(host: string | undefined, silent: Set<string>): (error: unknown) => void {
  return (error) => {
    if (host === undefined || !isSilentHost(error)) throw error
    silent.add(host)
  }
}

/** Ignores a foreign volume: it holds another owner's data and stays, while Tenantry's own objects are removed. */
function unlessForeign(error: unknown): void {
  if (!(error instanceof EngineError) || error.code !== 'FOREIGN_OBJECT') throw error
}
