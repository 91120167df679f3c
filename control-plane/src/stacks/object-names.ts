// Names on a host, from opaque ids alone: the same stack has the same names whoever makes it, and how often.
import { specHash, type Service } from './stack.ts'

const prefix = 'tenantry-'

/** Name on the host of a stack's network. */
export function networkName(stackId: string, network: string): string {
  return `${prefix}${stackId}-${network}`
}

/** Name on the host of a stack's volume. */
export function volumeName(stackId: string, volume: string): string {
  return `${prefix}${stackId}-${volume}`
}

/** What the names of all of a stack's volumes begin with, those of secrets too; without an id: those of all stacks. */
export function volumePrefix(stackId: string | undefined): string {
  return stackId === undefined ? prefix : volumeName(stackId, '')
}

/** A tenant's stack, that of a scratch home, or a region's. */
const ofStack = /^tenantry-([st]_[0-9a-f]{20}|region-[a-z][a-z0-9-]*-[0-9a-f]{8})-[a-z0-9-]+$/

/** Id of the stack that a volume of this name belongs to; undefined for a name that no stack gives. */
export function stackOfVolume(name: string): string | undefined {
  return ofStack.exec(name)?.[1]
}

/** The spec is part of the name: a replacement can stand beside what it replaces. */
export function containerName(stackId: string, service: Service): string {
  return `${containerPrefix(stackId, service.name)}${specHash(service).slice(0, 8)}`
}

/** Whether it is the name of a service's container, of whatever spec: labels are copied with a container that somebody makes like ours. */
export function isContainerName(name: string, stackId: string, service: string): boolean {
  const start = containerPrefix(stackId, service)
  return name.startsWith(start) && /^[0-9a-f]{8}$/.test(name.slice(start.length))
}

function containerPrefix(stackId: string, service: string): string {
  return `${prefix}${stackId}-${service}-`
}

/** Secrets of two specs of one service can stand beside each other too. */
export function secretsVolumeName(stackId: string, service: Service): string {
  return `${containerName(stackId, service)}-secrets`
}
