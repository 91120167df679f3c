// Chooses the hosts of a tenant's services. Pure.
import type { Placement } from '../stacks/index.ts'

/** A service to be placed, with the memory that its plan reserves. */
export interface ServiceNeed {
  service: string
  memoryBytes: number
}

/** A host that can receive services. */
export interface HostCapacity {
  id: string
  /** Hosts of one zone may fail together; undefined: a zone of its own. */
  zone?: string | undefined
  /** Memory that is not reserved. */
  freeBytes: number
}

/** Returns the kind of a service, whose instances have numbers: `postgres-2` is one of the kind `postgres`. */
export function kindOf(service: string): string {
  return service.replace(/-\d+$/, '')
}

/**
 * Returns a host for each service, so that services of one kind are on different hosts and zones as far as possible, and
 * otherwise on the host with the most free memory. Services that have a host stay there.
 * @param current hosts of the services that have one
 * @param together whether all services are on one host, because they share volumes
 * @returns undefined if there is no memory for all of them
 */
export function chooseHosts(
  needs: readonly ServiceNeed[],
  hosts: readonly HostCapacity[],
  current: Placement,
  together: boolean,
): Placement | undefined {
  const free = new Map(hosts.map(({ id, freeBytes }) => [id, freeBytes]))
  const chosen: Record<string, string> = { ...current }
  const open = needs.filter(({ service }) => chosen[service] === undefined)
  if (together) return allOnOne(open, hosts, chosen)
  // The largest first: smaller ones fit in what remains.
  for (const { service, memoryBytes } of open.toSorted((a, b) => b.memoryBytes - a.memoryBytes)) {
    const siblings = needs.map((need) => need.service).filter((other) => kindOf(other) === kindOf(service))
    const taken = siblings.flatMap((other) => chosen[other] ?? [])
    const [best] = hosts
      .filter(({ id }) => (free.get(id) ?? 0) >= memoryBytes)
      .toSorted(
        (a, b) =>
          timesIn(taken, a.id) - timesIn(taken, b.id) ||
          timesInZone(taken, hosts, a) - timesInZone(taken, hosts, b) ||
          (free.get(b.id) ?? 0) - (free.get(a.id) ?? 0) ||
          (a.id < b.id ? -1 : 1),
      )
    if (best === undefined) return undefined
    chosen[service] = best.id
    free.set(best.id, (free.get(best.id) ?? 0) - memoryBytes)
  }
  return chosen
}

/**
 * Returns the services of a placement that share their host with another one of their kind although a host without one can receive it. The
 * last one of each host should move.
 * @param hosts IDs of the hosts that receive services
 */
export function crowded(placement: Placement, hosts: readonly string[]): string[] {
  const services = Object.keys(placement).sort()
  return services.filter((service) => {
    const others = services.filter((other) => other !== service && kindOf(other) === kindOf(service))
    const isLast = others.some((other) => other < service && placement[other] === placement[service])
    const isFree = hosts.some((host) => ![service, ...others].some((one) => placement[one] === host))
    return isLast && isFree
  })
}

function allOnOne(
  open: readonly ServiceNeed[],
  hosts: readonly HostCapacity[],
  current: Placement,
): Placement | undefined {
  if (open.length === 0) return current
  const bytes = open.reduce((sum, { memoryBytes }) => sum + memoryBytes, 0)
  const [present] = Object.values(current)
  const [best] = hosts
    .filter(({ id, freeBytes }) => freeBytes >= bytes && (present === undefined || id === present))
    .toSorted((a, b) => b.freeBytes - a.freeBytes || (a.id < b.id ? -1 : 1))
  if (best === undefined) return undefined
  return { ...current, ...Object.fromEntries(open.map(({ service }) => [service, best.id])) }
}

function timesIn(taken: readonly string[], host: string): number {
  return taken.filter((id) => id === host).length
}

function timesInZone(taken: readonly string[], hosts: readonly HostCapacity[], { id, zone }: HostCapacity): number {
  if (zone === undefined) return timesIn(taken, id)
  return taken.filter((other) => hosts.find((host) => host.id === other)?.zone === zone).length
}
