// Puts the services of a stack on hosts. Pure.
import { onHost } from './on-host.ts'
import type { Stack } from './stack.ts'

/** IDs of hosts, by the names of the services that run there. */
export type Placement = Readonly<Record<string, string>>

/**
 * Returns the stack, or the part of one, with each service on its host, and each volume on that of the first service which uses it.
 * @throws RangeError for a service without a host
 */
export function placed<Part extends Pick<Stack, 'id' | 'services' | 'volumes'>>(
  stack: Part,
  placement: Placement,
): Part {
  const services = stack.services.map((service) => {
    const host = placement[service.name]
    if (host === undefined) throw new RangeError(`The service ${service.name} of ${stack.id} has no host.`)
    return { ...service, host }
  })
  const volumes = stack.volumes.map((volume) => ({
    ...volume,
    ...onHost({ host: services.find((service) => volume.name in service.volumes)?.host }),
  }))
  return { ...stack, services, volumes }
}
