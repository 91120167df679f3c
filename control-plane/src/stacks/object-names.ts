// Names on a host, derived from opaque IDs only, so that a stack always has the same names.
import { specHash, type Service } from './stack.ts'

const prefix = 'tenantry-'

/** Returns the name on the host of a stack's network. */
export function networkName(stackId: string, network: string): string {
  return `${prefix}${stackId}-${network}`
}

/** Returns the name on the host of a stack's volume. */
export function volumeName(stackId: string, volume: string): string {
  return `${prefix}${stackId}-${volume}`
}

/** Returns the common prefix of a stack's volumes, those of secrets included, or of all stacks' if no ID is given. */
export function volumePrefix(stackId: string | undefined): string {
  return stackId === undefined ? prefix : volumeName(stackId, '')
}

/** Pattern of names of a tenant's stack, a scratch home's or a region's. */
const ofStack = /^tenantry-([st]_[0-9a-f]{20}|region-[a-z][a-z0-9-]*-[0-9a-f]{8})-[a-z0-9-]+$/

/** Returns the ID of the stack that owns a volume of this name; undefined for another name. */
export function stackOfVolume(name: string): string | undefined {
  return ofStack.exec(name)?.[1]
}

/**
 * Returns the container's name, which contains the hash of its specification, so that a replacement can exist alongside
 * the old one.
 */
export function containerName(stackId: string, service: Service): string {
  return `${containerPrefix(stackId, service.name)}${specHash(service).slice(0, 8)}`
}

/**
 * Whether a name is that of a service's container with any specification. Labels are not sufficient: a copy of a container
 * has them, too.
 */
export function isContainerName(name: string, stackId: string, service: string): boolean {
  const start = containerPrefix(stackId, service)
  return name.startsWith(start) && /^[0-9a-f]{8}$/.test(name.slice(start.length))
}

function containerPrefix(stackId: string, service: string): string {
  return `${prefix}${stackId}-${service}-`
}

/** Returns the name of the volume of a service's secrets, which also contains the hash of the specification. */
export function secretsVolumeName(stackId: string, service: Service): string {
  return `${containerName(stackId, service)}-secrets`
}
