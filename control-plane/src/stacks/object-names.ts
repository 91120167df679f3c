// Names on a host, from opaque ids alone: the same stack has the same names whoever makes it, and how often.
import { specHash, type Service } from './stack.ts'

const prefix = 'tenantry-'

export function networkName(stackId: string, network: string): string {
  return `${prefix}${stackId}-${network}`
}

export function volumeName(stackId: string, volume: string): string {
  return `${prefix}${stackId}-${volume}`
}

/** The spec is part of the name: a replacement can stand beside what it replaces. */
export function containerName(stackId: string, service: Service): string {
  return `${prefix}${stackId}-${service.name}-${specHash(service).slice(0, 8)}`
}

/** Secrets of two specs of one service can stand beside each other too. */
export function secretsVolumeName(stackId: string, service: Service): string {
  return `${containerName(stackId, service)}-secrets`
}
