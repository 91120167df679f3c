// Invariants of clusters, in addition to those of all regions: no confirmed home is lost, and no control plane stops members of which
// the others depend.
import { isMember, type Change, type Container, type Volume } from '../docker-objects.ts'
import { clusterMembers } from '#control-plane/stacks/cluster-services.ts'
import type { ControlDatabase } from '../control-database.ts'
import type { Actor } from '../control-plane.ts'
import { dockerCli } from '../docker.ts'
import { engineItself } from '../programs.ts'
import type { Machines } from './hosts.ts'
import type { Patroni } from './patroni.ts'

interface ClusterInvariantsOptions {
  database: ControlDatabase
  machines: () => Machines
  patroni: () => Patroni
  regionStack: string
  /** Whether no accident has happened for so long that what was observed is what is. */
  isCalm: () => boolean
  now: () => Date
  breach: (what: string) => void
}

export type ClusterInvariants = ReturnType<typeof createClusterInvariants>

export function createClusterInvariants(options: ClusterInvariantsOptions) {
  const { database, machines, patroni, regionStack, isCalm, now, breach } = options
  /** Tenants with a home whose creation was confirmed, by the cluster. */
  const confirmed = new Map<string, Set<string>>()
  /** The last run of each container whose end was seen. */
  const ended = new WeakMap<Container, number>()
  const homesOf = (stack: string) => [...(confirmed.get(stack) ?? [])]
  const isPerson = (actor: Actor) => actor === dockerCli || actor === engineItself
  const isCluster = (stack: string) =>
    stack === regionStack || database.tenants.get(stack)?.isolation === 'cluster-per-tenant'
  const isDeleted = (stack: string): boolean => {
    const row = database.tenants.get(stack)
    if (stack === regionStack) return false
    return row === undefined || (row.desired === 'deleted' && row.purgeAfter !== null && row.purgeAfter <= now())
  }
  const volumesOf = (stack: string): Volume[] =>
    machines().all.flatMap(({ docker }) =>
      [...docker.volumes.values()].filter(({ labels, isCluster: isOne }) => isOne && labels?.stack === stack),
    )

  /** Checks that the other copies of the data have all homes. */
  const copyStays = (volume: Volume, actor: Actor) => {
    const stack = volume.labels?.stack ?? ''
    if (isPerson(actor) || !volume.isCluster || !isCluster(stack) || isDeleted(stack)) return
    if (homesOf(stack).length === 0 && database.tenants.get(stack)?.hadHome !== true) return
    const others = volumesOf(stack).filter((one) => one !== volume)
    const whole = others.filter((one) => homesOf(stack).every((id) => one.homes.has(id)))
    // Each member has data of its own before those on a former host are removed, also if it does not have the last commits yet.
    if (whole.length < 2 || (isCalm() && others.length < clusterMembers.length))
      breach(
        `${actor.name}: a copy of the data of ${stack}, ${volume.name}, was removed with ${whole.length} whole others`,
      )
  }

  /** Checks that enough other members confirm commits when a control plane ends one that runs. */
  const quorumStays = (container: Container, actor: Actor) => {
    if (container.run === 0 || ended.get(container) === container.run) return
    ended.set(container, container.run)
    const stack = container.labels?.stack ?? ''
    const isExpected = stack === regionStack || database.tenants.get(stack)?.desired === 'active'
    if (isPerson(actor) || actor.isLate() || !isMember(container) || !isExpected || !isCalm()) return
    const members = machines()
      .responding(stack)
      .flatMap((one) => patroni().memberIn(one.container) ?? [])
      .filter((member) => member.container !== container)
    const hasPrimary = members.some((member) => patroni().primaryOf(stack)?.container === member.container)
    const isServing = hasPrimary || !patroni().hasLed(container)
    const others = members.filter((member) => patroni().isConfirming(member))
    // Without it, the cluster confirmed no commits before either.
    const wasNeeded = !isServing || patroni().hasConfirmed(container)
    if (wasNeeded && (!isServing || others.length === 0))
      breach(
        `${actor.name}: ${container.name} was ended, and ${isServing ? 'no other member confirms commits' : 'there is no primary'}`,
      )
  }

  return {
    changed(change: Change, actor: Actor): void {
      if (change.kind === 'volume' && change.what === 'removed') copyStays(change.object, actor)
      const isEnd =
        change.kind === 'container' &&
        (change.what === 'removed' || (change.what === 'changed' && change.object.state === 'exited'))
      if (isEnd) quorumStays(change.object, actor)
    },
    confirmed(stack: string, work: string, tenantId: string): void {
      const homes = confirmed.get(stack) ?? new Set()
      confirmed.set(stack, homes)
      if (work === 'drop') homes.delete(tenantId)
      else homes.add(tenantId)
    },
    began(stack: string): void {
      const [home] = homesOf(stack)
      if (home !== undefined && !isDeleted(stack))
        breach(`an empty database began in ${stack}, in place of that with the home of ${home}`)
    },
    elected(stack: string, volume: Volume): void {
      const lost = homesOf(stack).find((id) => !volume.homes.has(id))
      if (lost !== undefined) breach(`the new primary of ${stack} does not have the home of ${lost}`)
    },
  }
}
