// What remains of services that have another host now. Pure.
import { containerName, volumeName, type Service, type Stack } from '../stacks/index.ts'
import type { ObservedContainer, ObservedHost, ObservedVolume } from './container-host.ts'

/** Returns the running container of a service that is as specified. */
function currentOf(stack: Stack, service: Service, { containers }: ObservedHost): ObservedContainer | undefined {
  const name = containerName(stack.id, service)
  return containers.find((container) => container.name === name && container.state === 'running')
}

/**
 * Returns the containers of services on hosts where they do not run any more: a host has returned after its services were
 * created on others. A service whose new container does not run yet keeps its former one.
 */
export function returnedContainers(stack: Stack, host: ObservedHost): ObservedContainer[] {
  return stack.services.flatMap((service) =>
    currentOf(stack, service, host) === undefined
      ? []
      : host.containers.filter(
          (container) => container.labels.service === service.name && container.host !== service.host,
        ),
  )
}

/**
 * Returns the copies of volumes on hosts where they are not used any more. A volume that must exist has no copies, and one that is not
 * used on its own host yet keeps them. Whether its data was copied is not known here.
 */
export function staleCopies(stack: Stack, host: ObservedHost): ObservedVolume[] {
  return stack.volumes
    .filter(({ mustExist, host: id }) => !mustExist && id !== undefined)
    .flatMap((volume) => {
      const name = volumeName(stack.id, volume.name)
      const users = stack.services.filter(({ volumes }) => volume.name in volumes)
      const isUsed = users.length > 0 && users.every((service) => currentOf(stack, service, host) !== undefined)
      return isUsed ? host.volumes.filter((copy) => copy.name === name && copy.host !== volume.host) : []
    })
}

/** Returns an observation without the containers that remain on former hosts. */
export function withoutReturned(stack: Stack, host: ObservedHost): ObservedHost {
  const returned = new Set(returnedContainers(stack, host))
  return returned.size === 0
    ? host
    : { ...host, containers: host.containers.filter((container) => !returned.has(container)) }
}

/** Whether anything remains of services on their former hosts. */
export function hasFormer(stack: Stack, host: ObservedHost): boolean {
  return returnedContainers(stack, host).length > 0 || staleCopies(stack, host).length > 0
}
