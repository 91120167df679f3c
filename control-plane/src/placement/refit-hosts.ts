// Chooses hosts again for services whose memory changes. Pure.
import type { Placement } from '../stacks/index.ts'
import { chooseHosts, type HostCapacity, type ServiceNeed } from './choose-hosts.ts'

/** The memory that services reserve on their hosts, in bytes. */
export type Reserved = Readonly<Record<string, number>>

/** The services of one tenant, and where they may be. */
export interface Refit {
  needs: readonly ServiceNeed[]
  /** Hosts of the services that stay where they are, if there is room. */
  current: Placement
  /** Memory that the services of `current` reserve already. */
  reserved: Reserved
  /** The hosts that respond. Their free memory does not include what this tenant reserves. */
  hosts: readonly HostCapacity[]
  /** IDs of the hosts to which services may go. */
  receiving: readonly string[]
  /** Whether all services are on one host, because they share volumes. Then none can leave it. */
  together: boolean
}

/**
 * Returns a host for each service. A service stays on its host if that has the memory, if the service needs no more than before, or if
 * the host does not respond, so that its memory is not known. Others go to hosts as `chooseHosts` chooses them.
 * @returns undefined if there is no memory for all of them
 */
export function refitHosts({ needs, current, reserved, hosts, receiving, together }: Refit): Placement | undefined {
  const staying: Record<string, string> = {}
  const left: HostCapacity[] = []
  const known = new Set(hosts.map(({ id }) => id))
  for (const [service, host] of Object.entries(current)) if (!known.has(host)) staying[service] = host
  for (const host of hosts) {
    const own = needs.filter(({ service }) => current[service] === host.id)
    const available = own.reduce((sum, { service }) => sum + (reserved[service] ?? 0), host.freeBytes)
    const services = stayingServices(own, reserved, available)
    if (together && services.length < own.length) return undefined
    for (const { service } of services) staying[service] = host.id
    if (receiving.includes(host.id)) left.push({ ...host, freeBytes: available - memoryOf(services) })
  }
  return chooseHosts(needs, left, staying, together)
}

/** Returns the services that stay on a host: all that do not grow, and the largest of the others. */
function stayingServices(own: readonly ServiceNeed[], reserved: Reserved, available: number): readonly ServiceNeed[] {
  const before = own.reduce((sum, { service }) => sum + (reserved[service] ?? 0), 0)
  if (memoryOf(own) <= Math.max(before, available)) return own
  const isLarger = ({ service, memoryBytes }: ServiceNeed) => memoryBytes > (reserved[service] ?? 0)
  const staying = own.filter((need) => !isLarger(need))
  let left = available - memoryOf(staying)
  for (const need of own.filter(isLarger).toSorted((a, b) => b.memoryBytes - a.memoryBytes)) {
    if (need.memoryBytes > left) continue
    staying.push(need)
    left -= need.memoryBytes
  }
  return staying
}

function memoryOf(needs: readonly ServiceNeed[]): number {
  return needs.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0)
}
