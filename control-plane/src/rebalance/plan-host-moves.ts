// Plans which services of clusters move between the hosts of a region, and which switchovers spread the primaries over them. Pure.
import { kindOf, type Reserved } from '../placement/index.ts'
import { isClusterMember, type Placement } from '../stacks/index.ts'

/** A host that receives services. */
export interface HostLoad {
  id: string
  /** Hosts of one zone may fail together; undefined: a zone of its own. */
  zone?: string | undefined
  /** Memory that no service of a tenant reserves. */
  freeBytes: number
  /** Memory that services of tenants can reserve. */
  totalBytes: number
}

/** A tenant's cluster, and where its services are. */
export interface PlacedCluster {
  tenantId: string
  placement: Placement
  /** Memory that the services reserve on their hosts. */
  reserved: Reserved
  /** The primary's service; undefined if it is not known. */
  primary: string | undefined
  /** Services of the replicas that can become the primary. */
  candidates: readonly string[]
  /** Whether its services can be moved now. */
  isMovable: boolean
}

/** The move of a service to another host. */
export interface PlannedServiceMove {
  tenantId: string
  service: string
  from: string
  to: string
  /** Memory that the service reserves. */
  bytes: number
}

/** A switchover that moves the primary to another host. */
export interface PlannedSwitchover {
  tenantId: string
  /** Hosts of the primary before and after. */
  from: string
  to: string
  /** The service of the primary, and the one that becomes it. */
  service: string
  targetService: string
}

/** A host as it is after the moves. */
export interface HostAfter extends HostLoad {
  /** Number of services of clusters there. */
  services: number
  /** Number of primaries there. */
  primaries: number
}

/** The part of a plan that concerns the hosts of a region. */
export interface HostPlan {
  serviceMoves: PlannedServiceMove[]
  switchovers: PlannedSwitchover[]
  after: HostAfter[]
}

/** The plan of a region with one host. */
export const noHostPlan: HostPlan = { serviceMoves: [], switchovers: [], after: [] }

/** Maximum number of moves of services, and of switchovers, of one plan. A further plan continues. */
export const maxPlannedHostMoves = 200

/** Difference of the free parts of two hosts that is not worth a move. */
const tolerance = 0.1
/** Minimum part by which a move has to reduce the difference, so that small services do not move in vain. */
const minGain = 0.01

/**
 * Plans moves of services from the host with the smallest part of free memory to that with the largest, until the parts are about equal,
 * and then switchovers until no host has two primaries more than another one that could have one of them. A primary does not move. No
 * move makes services of one kind share a host or a zone that did not before.
 * @param hosts the hosts that receive services
 */
export function planHostMoves(hosts: readonly HostLoad[], clusters: readonly PlacedCluster[]): HostPlan {
  const loads = hosts.map((host) => ({ ...host }))
  const placements = new Map(clusters.map(({ tenantId, placement }) => [tenantId, placement]))
  const serviceMoves: PlannedServiceMove[] = []
  const moved = new Set<string>()
  while (serviceMoves.length < maxPlannedHostMoves) {
    const move = nextMove(loads, clusters, placements, moved)
    if (move === undefined) break
    serviceMoves.push(move)
    moved.add(keyOf(move))
    placements.set(move.tenantId, { ...placements.get(move.tenantId), [move.service]: move.to })
    for (const load of loads) {
      if (load.id === move.from) load.freeBytes += move.bytes
      if (load.id === move.to) load.freeBytes -= move.bytes
    }
  }
  const { switchovers, primaries } = planSwitchovers(hosts, clusters, placements, moved)
  const all = [...placements.values()].flatMap((placement) => Object.values(placement))
  const after = loads.map((load) => ({
    ...load,
    services: all.filter((host) => host === load.id).length,
    primaries: primaries.get(load.id) ?? 0,
  }))
  return { serviceMoves, switchovers, after }
}

/** Whether services of one kind would be on fewer hosts, or in fewer zones, after a move. */
export function isSpreadWorse(
  placement: Placement,
  { service, to }: Pick<PlannedServiceMove, 'service' | 'to'>,
  hosts: readonly Pick<HostLoad, 'id' | 'zone'>[],
): boolean {
  const zones = new Map(hosts.map(({ id, zone }) => [id, zone === undefined ? `host ${id}` : `zone ${zone}`]))
  const of = (where: Placement) => {
    const siblings = Object.entries(where).filter(([other]) => kindOf(other) === kindOf(service))
    const ids = siblings.map(([, host]) => host)
    return { hosts: new Set(ids).size, zones: new Set(ids.map((id) => zones.get(id) ?? `host ${id}`)).size }
  }
  const [before, after] = [of(placement), of({ ...placement, [service]: to })]
  return after.hosts < before.hosts || after.zones < before.zones
}

/** Returns the move that makes two hosts most alike; undefined if none is worth it. */
function nextMove(
  loads: readonly HostLoad[],
  clusters: readonly PlacedCluster[],
  placements: ReadonlyMap<string, Placement>,
  moved: ReadonlySet<string>,
): PlannedServiceMove | undefined {
  const byPart = loads.toSorted((a, b) => partOf(a) - partOf(b) || (a.id < b.id ? -1 : 1))
  for (const source of byPart) {
    const services = clusters.flatMap((cluster) => movableFrom(source.id, cluster, placements, moved))
    for (const target of byPart.toReversed()) {
      const difference = partOf(target) - partOf(source)
      if (difference <= tolerance) break
      const found = services
        .map((move) => ({ move: { ...move, to: target.id }, gain: gainOf(move.bytes, source, target) }))
        .filter(({ move, gain }) => gain >= minGain && !isSpreadWorse(placements.get(move.tenantId) ?? {}, move, loads))
        .toSorted((a, b) => b.gain - a.gain || (keyOf(a.move) < keyOf(b.move) ? -1 : 1))[0]
      if (found !== undefined) return found.move
    }
  }
  return undefined
}

/** Returns the services of a cluster that can leave a host: all but the primary, and those that have moved. */
function movableFrom(
  host: string,
  { tenantId, reserved, primary, isMovable }: PlacedCluster,
  placements: ReadonlyMap<string, Placement>,
  moved: ReadonlySet<string>,
): Omit<PlannedServiceMove, 'to'>[] {
  if (!isMovable || primary === undefined) return []
  return Object.entries(placements.get(tenantId) ?? {}).flatMap(([service, from]) => {
    if (from !== host || service === primary || moved.has(keyOf({ tenantId, service }))) return []
    return [{ tenantId, service, from, bytes: reserved[service] ?? 0 }]
  })
}

function partOf({ freeBytes, totalBytes }: HostLoad): number {
  return totalBytes <= 0 ? 0 : freeBytes / totalBytes
}

/** Returns by which part a move reduces the difference of two hosts; 0 if they would only change their roles, or memory is missing. */
function gainOf(bytes: number, source: HostLoad, target: HostLoad): number {
  if (bytes > target.freeBytes) return 0
  const [before, after] = [partOf(source), partOf({ ...source, freeBytes: source.freeBytes + bytes })]
  const [roomy, filled] = [partOf(target), partOf({ ...target, freeBytes: target.freeBytes - bytes })]
  if (after > roomy || filled < before) return 0
  return roomy - before - Math.abs(filled - after)
}

/** Plans at most one switchover for each cluster, to a member that does not move itself. */
function planSwitchovers(
  hosts: readonly HostLoad[],
  clusters: readonly PlacedCluster[],
  placements: ReadonlyMap<string, Placement>,
  moved: ReadonlySet<string>,
): { switchovers: PlannedSwitchover[]; primaries: Map<string, number> } {
  const hostOf = ({ tenantId }: PlacedCluster, service: string) => placements.get(tenantId)?.[service]
  const primaries = new Map(hosts.map(({ id }) => [id, 0]))
  const add = (host: string | undefined, count: number) => {
    const before = primaries.get(host ?? '')
    if (host !== undefined && before !== undefined) primaries.set(host, before + count)
  }
  for (const cluster of clusters) if (cluster.primary !== undefined) add(hostOf(cluster, cluster.primary), 1)
  const switchovers: PlannedSwitchover[] = []
  const open = new Set(clusters.filter(({ isMovable }) => isMovable))
  while (switchovers.length < maxPlannedHostMoves) {
    const possible = [...open].flatMap((cluster) => {
      const { tenantId, primary, candidates } = cluster
      const from = primary === undefined ? undefined : hostOf(cluster, primary)
      if (primary === undefined || from === undefined || !primaries.has(from)) return []
      return candidates.flatMap((targetService) => {
        const to = hostOf(cluster, targetService)
        if (to === undefined || !primaries.has(to) || moved.has(keyOf({ tenantId, service: targetService }))) return []
        const gain = (primaries.get(from) ?? 0) - (primaries.get(to) ?? 0)
        return gain < 2 || !isClusterMember(targetService)
          ? []
          : [{ cluster, gain, step: { tenantId, from, to, service: primary, targetService } }]
      })
    })
    const order = (a: PlannedSwitchover, b: PlannedSwitchover) =>
      a.tenantId === b.tenantId ? (a.targetService < b.targetService ? -1 : 1) : a.tenantId < b.tenantId ? -1 : 1
    const best = possible.toSorted((a, b) => b.gain - a.gain || order(a.step, b.step))[0]
    if (best === undefined) break
    open.delete(best.cluster)
    switchovers.push(best.step)
    add(best.step.from, -1)
    add(best.step.to, 1)
  }
  return { switchovers, primaries }
}

function keyOf({ tenantId, service }: Pick<PlannedServiceMove, 'tenantId' | 'service'>): string {
  return `${tenantId} ${service}`
}
