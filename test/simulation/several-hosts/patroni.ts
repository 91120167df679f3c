// Clusters of Postgres under Patroni, with what the control plane depends on: a primary with a lease in etcd, replicas that copy and
// follow it, commits that a replica confirms, elections, and switches and copies on request.
import { networkName } from '#control-plane/stacks/object-names.ts'
import type { Chance } from '../chance.ts'
import { clusterOf, isMember, type Container, type Volume } from '../docker-objects.ts'
import type { Scheduler } from '../scheduler.ts'
import type { Etcd } from './etcd.ts'
import type { Located, Machines } from './hosts.ts'

interface PatroniOptions {
  machines: Machines
  etcd: Etcd
  chance: Chance
  scheduler: Scheduler
  /** Called when a member creates the first database of a cluster. */
  onBegin: (stack: string, volume: Volume) => void
  /** Called when a member becomes the primary. */
  onElected: (stack: string, volume: Volume) => void
}

/** A member of a cluster that runs. */
export interface Member extends Located {
  stack: string
  /** Its name for Patroni, which contains its host. */
  identity: string
  volume: Volume
}

/** The keys of a cluster in etcd. */
interface Keys {
  /** Identifier of the first database; undefined before it was created. */
  system: number | undefined
  /** Whether the first database is complete. */
  isComplete: boolean
  leader: { identity: string; until: number } | undefined
  lastLeader: string | undefined
  /** Replicas that may confirm commits. */
  sync: Set<string>
  timeline: number
  members: Map<string, { until: number; state: string }>
}

/** The database in a volume. */
interface Data {
  system: number
  commits: number
}

/** The lease of a primary, and the time after which the key of a silent member expires. */
const leaseMilliseconds = 20_000

export type Patroni = ReturnType<typeof createPatroni>

export function createPatroni({ machines, etcd, chance, scheduler, onBegin, onElected }: PatroniOptions) {
  const clusters = new Map<string, Keys>()
  const contents = new WeakMap<Volume, Data>()
  const primaries = new Set<string>()
  const copying = new Set<string>()
  let systems = 0
  const now = () => scheduler.now()
  const runOf = ({ id, run }: Container) => `${id} ${run}`

  const memberAt = (located: Located): Member | undefined => {
    const { host, container } = located
    const volume = host.docker.volumes.get(clusterOf(container) ?? '')
    const { stack, service } = container.labels ?? {}
    if (!isMember(container) || volume === undefined || stack === undefined || service === undefined) return undefined
    return { ...located, stack, volume, identity: `${service}-${host.id}` }
  }
  const membersOf = (stack: string): Member[] => machines.responding(stack).flatMap((one) => memberAt(one) ?? [])
  const dataOf = (volume: Volume): Data | undefined => (volume.isCluster ? contents.get(volume) : undefined)
  const reaches = (one: Member, other: Member) => machines.reaches(one, other, networkName(one.stack, 'net'))

  const reachesEtcd = (member: Located, stack: string): boolean =>
    etcd.members().some((one) => machines.reaches(member, one, networkName(stack, 'net')) && etcd.hasQuorum(one))

  const leaderOf = ({ leader }: Keys): string | undefined =>
    leader !== undefined && leader.until > now() ? leader.identity : undefined
  const primaryOf = (stack: string): Member | undefined => {
    const keys = clusters.get(stack)
    const identity = keys && leaderOf(keys)
    return membersOf(stack).find((one) => one.identity === identity && primaries.has(runOf(one.container)))
  }
  const note = (keys: Keys, { identity }: Member, state: string) =>
    keys.members.set(identity, { until: now() + leaseMilliseconds, state })
  const isStreaming = (keys: Keys, identity: string): boolean => {
    const seen = keys.members.get(identity)
    return seen?.state === 'streaming' && seen.until > now()
  }

  const copy = (from: Volume, to: Volume) => {
    const data = dataOf(from)
    if (data === undefined) return
    to.isCluster = true
    to.homes = new Map([...from.homes].map(([id, home]) => [id, { ...home }]))
    contents.set(to, { ...data })
  }
  const clear = (volume: Volume) => {
    volume.isCluster = false
    volume.homes = new Map()
  }

  const lead = (keys: Keys, member: Member) => {
    primaries.add(runOf(member.container))
    keys.leader = { identity: member.identity, until: now() + leaseMilliseconds }
    keys.lastLeader = member.identity
    note(keys, member, 'running')
  }
  /** Returns the replicas that confirm commits of a primary now. */
  const confirming = (keys: Keys, primary: Member): Member[] =>
    membersOf(primary.stack).filter(
      (one) => keys.sync.has(one.identity) && isStreaming(keys, one.identity) && reaches(primary, one),
    )

  /** Creates the first database. If the member dies meanwhile, the key remains, and no other one creates a database. */
  const begin = (keys: Keys, member: Member) => {
    const system = ++systems
    keys.system = system
    note(keys, member, 'initializing new cluster')
    const run = runOf(member.container)
    scheduler.after(chance.between(500, 3_000), () => {
      if (runOf(member.container) !== run || !member.host.docker.responds(member.container)) return
      if (clusters.get(member.stack) !== keys || member.volume.isCluster) return
      member.volume.isCluster = true
      contents.set(member.volume, { system, commits: 0 })
      keys.isComplete = true
      onBegin(member.stack, member.volume)
      lead(keys, member)
    })
  }

  const follow = (keys: Keys, member: Member, leader: string) => {
    const primary = membersOf(member.stack).find(({ identity }) => identity === leader)
    const isNear = primary !== undefined && reaches(member, primary) && dataOf(primary.volume) !== undefined
    if (!isNear) return note(keys, member, dataOf(member.volume) === undefined ? 'stopped' : 'running')
    if (dataOf(member.volume) !== undefined) {
      copy(primary.volume, member.volume)
      return note(keys, member, 'streaming')
    }
    note(keys, member, 'creating replica')
    const run = runOf(member.container)
    if (copying.has(run)) return
    copying.add(run)
    scheduler.after(chance.between(500, 6_000), () => {
      copying.delete(run)
      const isSame = runOf(member.container) === run && member.host.docker.responds(member.container)
      if (isSame && leaderOf(keys) === leader && reaches(member, primary) && !member.volume.isCluster)
        copy(primary.volume, member.volume)
    })
  }

  /** Returns the identities of the members that may be elected; of none before the first primary, when each may be. */
  const votersOf = ({ sync, lastLeader }: Keys): ReadonlySet<string> =>
    new Set([...sync, ...(lastLeader === undefined ? [] : [lastLeader])])

  /** Elects a member that is sure to have all confirmed commits, which are on the primary and on a replica that confirms them. */
  const race = (keys: Keys, member: Member, { commits }: Data) => {
    note(keys, member, 'running')
    const voters = votersOf(keys)
    if (voters.size > 0 && !voters.has(member.identity)) return
    const others = membersOf(member.stack).filter((one) => one.identity !== member.identity && reaches(member, one))
    const seen = others.filter(({ volume }) => dataOf(volume)?.system === keys.system)
    const unseen = [...voters].filter((id) => id !== member.identity && !seen.some(({ identity }) => identity === id))
    if (unseen.length > 1 || seen.some(({ volume }) => (dataOf(volume)?.commits ?? 0) > commits)) return
    keys.timeline++
    lead(keys, member)
    onElected(member.stack, member.volume)
  }

  const cycle = (member: Member) => {
    const keys = clusters.get(member.stack)
    const run = runOf(member.container)
    if (keys === undefined || !reachesEtcd(member, member.stack)) {
      if (keys === undefined || leaderOf(keys) !== member.identity) primaries.delete(run)
      return
    }
    const [data, leader] = [dataOf(member.volume), leaderOf(keys)]
    if (leader !== member.identity) primaries.delete(run)
    if (data === undefined) {
      if (leader === member.identity) keys.leader = undefined
      else if (leader !== undefined) follow(keys, member, leader)
      else if (keys.system === undefined) begin(keys, member)
      else if (keys.members.get(member.identity)?.state !== 'initializing new cluster') note(keys, member, 'stopped')
      return
    }
    keys.system ??= data.system
    keys.isComplete ||= keys.system === data.system
    if (data.system !== keys.system) note(keys, member, 'start failed')
    else if (leader === undefined) race(keys, member, data)
    else if (leader !== member.identity) follow(keys, member, leader)
    else {
      lead(keys, member)
      keys.sync = new Set(
        membersOf(member.stack)
          .filter((one) => one.identity !== leader && isStreaming(keys, one.identity) && reaches(member, one))
          .map(({ identity }) => identity),
      )
    }
  }

  for (const host of machines.all)
    host.docker.starts.add((container) => {
      const member = memberAt({ host, container })
      if (member === undefined) return
      const { run } = container
      const loop = () => {
        if (container.run !== run || !host.docker.isRunning(container)) return
        if (host.docker.responds(container)) cycle(member)
        scheduler.after(chance.between(1_000, 3_000), loop)
      }
      loop()
    })

  /** Returns the names that the member in a container may have had. A removed container is on no host any more. */
  const identitiesOf = ({ labels }: Container) => machines.all.map(({ id }) => `${labels?.service ?? ''}-${id}`)

  /** Returns the member in a container. */
  const memberIn = (container: Container): Member | undefined => {
    const host = machines.hostOf(container)
    return host && memberAt({ host, container })
  }

  const switchOver = (
    stack: string,
    keys: Keys,
    { leader, candidate }: { leader: string; candidate: string },
  ): string | undefined => {
    const [from, to] = [leader, candidate].map((id) => membersOf(stack).find(({ identity }) => identity === id))
    if (from === undefined || leaderOf(keys) !== leader) return 'leader name does not match'
    if (to === undefined || !confirming(keys, from).some(({ identity }) => identity === candidate))
      return 'candidate name does not match with sync_standby'
    copy(from.volume, to.volume)
    primaries.delete(runOf(from.container))
    note(keys, from, 'stopped')
    keys.sync.add(leader)
    keys.sync.delete(candidate)
    keys.timeline++
    lead(keys, to)
    onElected(to.stack, to.volume)
    return undefined
  }

  return {
    primaryOf,
    memberIn,
    /** Whether a member has all commits of the primary and confirms further ones. */
    isConfirming(member: Member): boolean {
      const [keys, primary] = [clusters.get(member.stack), primaryOf(member.stack)]
      return (
        keys !== undefined &&
        primary !== undefined &&
        confirming(keys, primary).some(({ identity }) => identity === member.identity)
      )
    },

    /**
     * Whether a cluster can have a primary again if a host is lost with its data. Until a first replica confirms commits, only the primary
     * is sure to have them all, and no other member is elected.
     */
    survivesLossOf(host: string, stack: string): boolean {
      const keys = clusters.get(stack)
      const voters = keys === undefined ? [] : [...votersOf(keys)]
      return voters.length === 0 || voters.some((identity) => !identity.endsWith(`-${host}`))
    },

    /** Whether the member in a container, which has just ended, has confirmed commits until then. */
    hasConfirmed(container: Container): boolean {
      const keys = clusters.get(container.labels?.stack ?? '')
      return keys !== undefined && identitiesOf(container).some((one) => keys.sync.has(one) && isStreaming(keys, one))
    },

    /** Whether the member in a container, which has just ended, was the primary until then. */
    hasLed(container: Container): boolean {
      const keys = clusters.get(container.labels?.stack ?? '')
      const isOf = (identity = '') => identitiesOf(container).includes(identity)
      return keys !== undefined && isOf(keys.lastLeader) && (keys.leader === undefined || isOf(leaderOf(keys)))
    },

    /** Gives a cluster its keys, as etcd-access does. */
    open(stack: string): void {
      const members = new Map<string, { until: number; state: string }>()
      const fresh = { system: undefined, leader: undefined, lastLeader: undefined, sync: new Set<string>(), members }
      if (!clusters.has(stack)) clusters.set(stack, { ...fresh, isComplete: false, timeline: 1 })
    },
    close: (stack: string) => clusters.delete(stack),
    /** Returns whether a cluster has created its database, as etcd-access reports it. */
    begun(stack: string): 'no' | 'creating' | 'yes' {
      const keys = clusters.get(stack)
      if (keys?.system === undefined) return 'no'
      return keys.isComplete ? 'yes' : 'creating'
    },

    /** Reports a cluster as a member sees it; undefined if it does not reach etcd. */
    report(member: Member): object | undefined {
      const keys = clusters.get(member.stack)
      if (keys === undefined || !reachesEtcd(member, member.stack)) return undefined
      const leader = leaderOf(keys)
      const roleOf = (identity: string) =>
        identity === leader ? 'leader' : keys.sync.has(identity) ? 'quorum_standby' : 'replica'
      const members = [...keys.members].filter(([, { until }]) => until > now())
      return {
        members: members.map(([name, { state }]) => ({
          name,
          role: roleOf(name),
          state: name === leader ? 'running' : state,
          timeline: keys.timeline,
          lag: state === 'streaming' ? 0 : 'unknown',
        })),
      }
    },

    /** Makes a replica the primary. @returns why not; undefined if it is */
    switchOver: (member: Member, request: { leader: string; candidate: string }): string | undefined => {
      const keys = clusters.get(member.stack)
      if (keys === undefined || !reachesEtcd(member, member.stack)) return 'etcd does not respond'
      return switchOver(member.stack, keys, request)
    },

    /** Lets a member copy its data again. @returns why not; undefined if it does */
    copyAgain(member: Member): string | undefined {
      const keys = clusters.get(member.stack)
      const leader = keys && leaderOf(keys)
      if (leader === undefined || leader === member.identity) return 'the member leads, or there is no leader'
      clear(member.volume)
      return undefined
    },

    /**
     * Commits a change of the database in a cluster. @param change makes it in the volume of the primary
     * @throws Error if no replica confirms it. It may be on the primary all the same
     */
    commit<T>(primary: Member, change: () => T): T {
      const keys = clusters.get(primary.stack)
      const replicas = keys === undefined ? [] : confirming(keys, primary)
      const data = dataOf(primary.volume)
      if (data === undefined || (replicas.length === 0 && chance.happens(0.5))) throw new Error('the commit waits')
      const result = change()
      contents.set(primary.volume, { ...data, commits: data.commits + 1 })
      if (replicas.length === 0) throw new Error('the commit waits')
      const first = chance.pick(replicas)
      for (const replica of replicas) if (replica === first || chance.happens(0.5)) copy(primary.volume, replica.volume)
      return result
    },

    /**
     * Ends a member that was stopped in order, which reports that in etcd. If it was the primary, replicas receive its last commits, and it
     * gives up its lease.
     */
    stopped(container: Container): void {
      const member = memberIn(container)
      const keys = clusters.get(member?.stack ?? '')
      if (member === undefined || keys === undefined) return
      const wasPrimary = primaries.delete(runOf(container))
      if (!reachesEtcd(member, member.stack)) return
      note(keys, member, 'stopped')
      if (!wasPrimary || leaderOf(keys) !== member.identity) return
      for (const replica of confirming(keys, member)) copy(member.volume, replica.volume)
      keys.leader = undefined
    },
  }
}
