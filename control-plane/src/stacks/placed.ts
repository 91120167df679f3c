// Puts the services of a stack on hosts. Pure.
import { onHost } from './on-host.ts'
import type { Service, Stack, Volume } from './stack.ts'

/** IDs of hosts, by the names of the services that run there. */
export type Placement = Readonly<Record<string, string>>

/**
 * Returns the stack with each service on its host, and each volume on that of the first service which uses it.
 * @throws RangeError for a service without a host
 */
export function placed(stack: Stack, placement: Placement): Stack {
  const services = stack.services.map((service) => {
    const host = placement[service.name]
    if (host === undefined) throw new RangeError(`The service ${service.name} of ${stack.id} has no host.`)
    return { ...service, host }
  })
  return { ...stack, services, volumes: placedVolumes(stack.volumes, services) }
}

/** Returns each volume on the host of the first service that uses it. */
export function placedVolumes(volumes: readonly Volume[], services: readonly Service[]): Volume[] {
  return volumes.map((volume) => ({
    ...volume,
    ...onHost({ host: services.find((service) => volume.name in service.volumes)?.host }),
  }))
}
