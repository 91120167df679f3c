// Invariants that must hold after every step, whatever fails. The first violation ends the run.
import type { RoutePhase } from '@tenantry/contract'
import type { Status } from '#control-plane/tenants/tenant.ts'
import type { ControlDatabase, TenantRow } from './control-database.ts'
import type { Actor, ControlPlane } from './control-plane.ts'
import { dockerCli, type Docker } from './docker.ts'
import { clusterOf, type Change, type Container, type Volume } from './docker-objects.ts'
import { engineItself } from './programs.ts'

export type Invariants = ReturnType<typeof createInvariants>

export interface InvariantsOptions {
  installation: string
  database: ControlDatabase
  /** Returns the Engines of all hosts. */
  dockers: () => readonly Docker[]
  /** Stacks with our label that this database knows nothing of. */
  unknown: ReadonlySet<string>
  now: () => Date
  /** Receives the description of each violation. */
  breach: (what: string) => void
}

export function createInvariants({ installation, database, dockers, unknown, now, breach }: InvariantsOptions) {
  /** Generation and time at which each control plane last observed a tenant as healthy. */
  const seen = new WeakMap<ControlPlane, Map<string, { generation: number; at: Date }>>()
  /** Times at which tenants were last removed from the gateways. */
  const unrouted = new Map<string, Date>()
  const isOurs = (labels: Change['object']['labels']) =>
    labels?.installation === installation && !unknown.has(labels.stack)
  const isCopy = ({ name }: Volume) => /-data-\d$/.test(name)
  const isPerson = (actor: Actor) => actor === dockerCli || actor === engineItself

  const foreignStays = (change: Change, actor: Actor) => {
    // The Engine creates a missing volume for a container, without labels.
    if (
      isOurs(change.object.labels) ||
      isPerson(actor) ||
      ('isMadeByEngine' in change.object && change.object.isMadeByEngine)
    )
      return
    // Attached containers are not changed by their connections.
    breach(`${actor.name}: the foreign ${change.kind} ${change.object.name} was ${change.what}`)
  }

  const named = ({ kind, what, object }: Change, actor: Actor) => {
    if (what !== 'created' || kind === 'home' || isPerson(actor)) return
    const { labels, name } = object
    const isRight =
      labels !== undefined &&
      name.startsWith(`tenantry-${labels.stack}-`) &&
      (kind !== 'container' || labels.service !== undefined)
    if (!isRight) breach(`${actor.name}: the ${kind} ${name} has a name or labels that no stack gives it`)
  }

  const oneServer = (started: Container) => {
    const cluster = clusterOf(started)
    const docker = dockers().find(({ containers }) => containers.get(started.name) === started)
    if (cluster === undefined || docker === undefined) return
    const others = [...docker.containers.values()].filter(
      (other) => other !== started && docker.isRunning(other) && clusterOf(other) === cluster,
    )
    const [other] = others
    // A request of a caller that gave up or lost the lead may still arrive. Then the lock in the volume decides.
    if (other === undefined || other.startedLate || started.startedLate) return
    breach(`${started.name} and ${other.name} run on the volume ${cluster}`)
  }

  const stackOf = (volume: Volume) => /^tenantry-(t_[0-9a-f]+)-(?:data|files)$/.exec(volume.name)?.[1]

  const dataStays = (volume: Volume, actor: Actor) => {
    // Other members of a cluster may have the same data.
    if (isPerson(actor) || isCopy(volume)) return
    for (const tenantId of volume.homes.keys()) {
      const row = database.tenants.get(tenantId)
      const isDue =
        row === undefined || (row.desired === 'deleted' && row.purgeAfter !== null && row.purgeAfter <= now())
      if (!isDue) breach(`${actor.name}: the volume ${volume.name} was removed with the home of ${tenantId} in it`)
    }
  }

  const notAgain = (volume: Volume, actor: Actor) => {
    if (isPerson(actor) || actor.isLate()) return
    const stack = stackOf(volume)
    const row = stack === undefined ? undefined : database.tenants.get(stack)
    if (row?.hadHome === true && row.homeVersion !== null)
      breach(`${actor.name}: an empty ${volume.name} was made in place of one that held data`)
  }

  /** Checks that no empty cluster replaces that of a tenant with its own database. */
  const clusterStays = (volume: Volume, actor: Actor) => {
    const stack = stackOf(volume)
    const row = stack === undefined ? undefined : database.tenants.get(stack)
    if (row?.hadHome === true && row.desired !== 'deleted')
      breach(`${actor.name}: an empty database began in ${volume.name}, in place of that of ${row.id}`)
  }

  const wellAt = (caller: ControlPlane, tenantId: string): number => {
    const known = seen.get(caller)?.get(tenantId)
    const since = unrouted.get(tenantId)
    return known === undefined || (since !== undefined && known.at < since) ? 0 : known.generation
  }

  return {
    changed(change: Change, actor: Actor): void {
      if (change.kind === 'home') {
        const row = database.tenants.get(change.tenantId)
        if (row?.hadHome === true && row.desired !== 'deleted')
          breach(`${actor.name}: an empty home was made in place of that of ${change.tenantId}`)
        return
      }
      if (change.kind === 'cluster') {
        clusterStays(change.object, actor)
        return
      }
      foreignStays(change, actor)
      named(change, actor)
      if (change.kind === 'container' && change.what === 'started') oneServer(change.object)
      if (change.kind === 'volume' && change.what === 'removed') dataStays(change.object, actor)
      if (change.kind === 'volume' && change.what === 'created') notAgain(change.object, actor)
    },
    written(epoch: bigint, what: string): void {
      if (epoch !== database.state.epoch)
        breach(`the leader of epoch ${epoch} wrote "${what}" at epoch ${database.state.epoch}`)
    },
    allocated(): void {
      const numbers = [...database.subnets.values()].map(({ regionId, number }) => `${regionId} ${number}`)
      if (new Set(numbers).size !== numbers.length) breach(`subnets are allocated twice: ${numbers.join(', ')}`)
    },
    freed(stack: string): void {
      const networks = dockers().flatMap((docker) => [...docker.networks.values()])
      const network = networks.find(({ labels }) => isOurs(labels) && labels?.stack === stack)
      // A container on a host that was away may use it. The sweeper removes it later.
      const isUsed = dockers().some((docker) =>
        [...docker.containers.values()].some(
          (one) => docker.isRunning(one) && one.slots.get(network?.name ?? '')?.networkId === network?.id,
        ),
      )
      if (network !== undefined && !network.madeLate && !isUsed)
        breach(`the subnet of ${stack} was freed while ${network.name} is there`)
    },
    healthSeen(caller: ControlPlane, tenantId: string, generation: number): void {
      const known = seen.get(caller) ?? new Map<string, { generation: number; at: Date }>()
      known.set(tenantId, { generation: Math.max(generation, known.get(tenantId)?.generation ?? 0), at: now() })
      seen.set(caller, known)
    },
    published(row: TenantRow, phase: RoutePhase, caller: ControlPlane, actor: Actor): void {
      if (phase !== 'ready' && row.routePhase === 'ready') unrouted.set(row.id, now())
      if (row.isolation === 'schema-per-tenant' || phase !== 'ready' || row.routePhase === 'ready' || actor.isLate())
        return
      if (wellAt(caller, row.id) === 0)
        breach(`${caller.name}: ${row.id} was published ready without an observation as healthy`)
    },
    observed(row: TenantRow, status: Status, generation: number, caller: ControlPlane, actor: Actor): void {
      const isChanged = row.status !== status || row.observedGeneration !== generation
      if (status !== 'ready' || !isChanged || actor.isLate()) return
      if (wellAt(caller, row.id) < generation)
        breach(
          `${caller.name}: ${row.id} was recorded ready at generation ${generation} without an observation as healthy`,
        )
    },
    removed(row: TenantRow): void {
      if (row.desired !== 'deleted' || row.purgeAfter === null || row.purgeAfter > now())
        breach(`${row.id} was removed before its time`)
    },
  }
}
