// Works of the control planes of a platform on three hosts, each with the failpoints that it passes, and when it has ended.
import type { FailpointName } from '#control-plane/reconcile/failpoints.ts'
import { clusterMembers } from '#control-plane/stacks/cluster-services.ts'
import { until } from '#test/support/docker.ts'
import type { LabHost } from '#test/support/swarm-lab.ts'
import type { SwarmPlatform } from '#test/support/swarm-platform.ts'
import type { Chance } from '../simulation/chance.ts'

/** A failpoint, and the pass at which it kills; the default is the first. */
export type Point = FailpointName | `${FailpointName}@${number}`

/** A work of the control planes. */
export interface Work {
  name: string
  /** The failpoints that the leader passes when it does the work. */
  points: readonly Point[]
  /** Makes the work possible, while no failpoint is armed. */
  prepare?(): Promise<void>
  /** Requests it. The response may be lost with the control plane that gives it. */
  begin(): Promise<void>
  /** Returns what remains to be done; undefined when the work has ended. */
  remaining(): Promise<string | undefined>
}

/** Works that follow each other, and after which the platform is as before. */
export type Scenario = () => Promise<Work[]>

interface WorksOptions {
  platform: SwarmPlatform
  /** ID of the tenant with a cluster that is there for the whole time. */
  tenantId: string
  chance: Chance
  /** Receives the hosts that do not respond. */
  away: Set<LabHost>
}

const choosing = ['allocate.chosen', 'allocate.placed'] as const
const converging = [
  'converge.before',
  'converge.step-before',
  'converge.step-before@2',
  'converge.step-after',
  'converge.step-after@2',
] as const
const releasing = ['release.before', 'release.after'] as const
const allocating = ['allocate.before', 'allocate.pinned', 'allocate.subnet', ...choosing] as const
const creating = [
  'begin.after',
  ...allocating,
  ...converging,
  'database.prepared',
  'home.created',
  'observe.after',
] as const
const deleting = [
  'delete.unrouted',
  'purge.unpublished',
  'purge.step-after',
  'purge.step-after@2',
  'purge.step-after@3',
  'purge.services-removed',
  'purge.finished',
] as const
const rebalancing = [
  'rebalance.settled',
  'rebalance.chosen',
  'rebalance.begun',
  'switchover.before',
  'switchover.sent',
  'switchover.done',
] as const
/** The primary of the cluster that tenants share leaves the host. */
const leaving = ['region.leave-before', 'region.leave-after'] as const
const moving = [...choosing, ...converging, 'converge.step-before@3', 'converge.step-after@3', ...releasing] as const

const shown = (value: unknown) => JSON.stringify(value)

/** Creates the scenarios. Those that take less time come more than once, so that they are chosen more often. */
export function createScenarios({ platform, tenantId, chance, away }: WorksOptions): Scenario[] {
  const { hosts } = platform.lab
  let created = 0

  /** Sends a request that a killed control plane may leave without a response. A repeated one has no further effect. */
  const request = async (method: string, path: string, body?: unknown): Promise<void> => {
    const { status, body: responded } = await platform.call(method, path, body)
    // The first attempt may have been carried out without its response.
    if (status >= 400 && ![404, 409].includes(status))
      throw new Error(`${method} ${path}: ${status} ${shown(responded)}`)
  }
  const unready = async (id: string): Promise<string | undefined> => {
    const { body } = await platform.call('GET', `/v1/tenants/${id}`)
    const isReady = body['status'] === 'ready' && body['generation'] === body['observed_generation']
    return isReady ? undefined : shown(body)
  }
  const use = (host: LabHost, verb: string) => request('POST', `/v1/regions/local/hosts/${host.id}/${verb}`)
  const shownHost = async ({ id }: LabHost): Promise<Record<string, unknown>> => {
    const { body } = await platform.call('GET', '/v1/regions/local/hosts')
    const list = body['hosts'] as Record<string, unknown>[]
    return list.find((host) => host['id'] === `local.${id}`) ?? {}
  }
  const placedOn = async ({ id }: LabHost): Promise<string[]> =>
    (await platform.sql('select service from placements where tenant_id = $1 and host_id = $2', [tenantId, id])).map(
      ({ service }) => String(service),
    )

  /** Returns what of the tenant a host still has. */
  const onHost = async (host: LabHost): Promise<string | undefined> => {
    const [placed, containers, volumes] = await Promise.all([
      placedOn(host),
      away.has(host) ? [] : platform.containersOf(host, tenantId),
      away.has(host) ? [] : platform.volumesOf(host, tenantId),
    ])
    const rest = [...placed, ...containers, ...volumes]
    return rest.length === 0 ? undefined : `on ${host.id}: ${rest.join(', ')}`
  }

  /** Returns a member of a cluster on a host; undefined without one. */
  const memberOn = async (host: LabHost, cluster: string) => {
    const containers = await platform.containersOf(host, cluster)
    return clusterMembers.find((name) => containers.some((container) => container.includes(`-${name}-`)))
  }

  const create = (isolation: string, points: readonly Point[]): { work: Work; id: () => Promise<string> } => {
    const name = `killed-${++created}`
    const id = async () => {
      const [row] = await platform.sql('select id from tenants where name = $1', [name])
      return row === undefined ? '' : String(row['id'])
    }
    const work: Work = {
      name: `creates a ${isolation}`,
      points,
      begin: () => request('POST', '/v1/tenants', { name, plan: 'Pro', region: 'local', isolation }),
      async remaining() {
        const found = await id()
        return found === '' ? `There is no tenant ${name}.` : unready(found)
      },
    }
    return { work, id }
  }

  const remove = (isolation: string, id: () => Promise<string>): Work => ({
    name: `deletes a ${isolation}`,
    points: deleting,
    begin: async () => request('DELETE', `/v1/tenants/${await id()}?purge=true`),
    async remaining() {
      const found = await id()
      return found === '' ? undefined : unready(found)
    },
  })

  /** Makes the primaries of two clusters run on one host, so that a rebalance spreads them. */
  const gather = async (id: string): Promise<void> => {
    const { host } = await platform.primaryOf(tenantId)
    const member = await memberOn(host, id)
    if (member === undefined) throw new Error(`The cluster ${id} has no member on ${host.id}.`)
    await platform.untilComplete(id)
    if ((await platform.primaryOf(id)).member !== member)
      await request('POST', `/v1/tenants/${id}/switchover`, { to: member })
    await until(async () => ((await platform.primaryOf(id)).member === member ? true : undefined), 60)
    await platform.untilComplete(id)
    let plan: unknown
    await until(async () => {
      const { body } = await platform.call('POST', '/v1/regions/local/rebalance', {})
      plan = body
      return (body['switchovers'] as unknown[]).length > 0 ? true : undefined
    }, 60).catch((cause: unknown) => {
      throw new Error(`Two primaries on ${host.id} cause no switchover in the plan: ${shown(plan)}`, { cause })
    })
  }

  const rebalance = (id: () => Promise<string>): Work => {
    let before = 0
    const list = async () => {
      const { body } = await platform.call('GET', '/v1/regions/local/rebalances')
      return body['rebalances'] as { state: string }[]
    }
    return {
      name: 'rebalances the hosts',
      points: rebalancing,
      async prepare() {
        await gather(await id())
        before = (await list()).length
      },
      begin: () => request('POST', '/v1/regions/local/rebalance', { dry_run: false }),
      async remaining() {
        const rebalances = await list()
        const [newest] = rebalances
        if (rebalances.length === before) return 'The rebalance was not begun.'
        return newest?.state === 'done' ? undefined : shown(newest)
      },
    }
  }

  /** @param leaves whether the primary of the shared cluster is on the host */
  const drain = (host: LabHost, leaves: boolean): Work => ({
    name: `drains ${leaves ? 'the host of the shared primary' : 'a host'}`,
    points: leaves ? [...leaving, ...moving] : moving,
    begin: () => use(host, 'drain'),
    async remaining() {
      const rest = await onHost(host)
      if (rest !== undefined || !leaves) return rest
      const primary = await platform.primaryOf(platform.sharedCluster)
      return primary.host === host ? `The primary ${primary.member} of the shared cluster is on ${host.id}.` : undefined
    },
  })

  const activate = (host: LabHost): Work => ({
    name: 'uses a host again',
    points: moving,
    begin: () => use(host, 'activate'),
    async remaining() {
      const member = await memberOn(host, tenantId)
      return member === undefined ? `${host.id} has no member: ${shown(await placedOn(host))}` : undefined
    },
  })

  const lose = (host: LabHost, isCut: boolean): Work => ({
    name: `replaces the services of a host that is ${isCut ? 'cut off' : 'dead'}`,
    points: [...choosing, ...converging],
    async prepare() {
      away.add(host)
      if (isCut) await host.connect(false)
      else host.kill()
      await platform.untilHost(host, ({ state }) => state === 'unreachable')
    },
    begin: () => use(host, 'lost'),
    async remaining() {
      const rest = await onHost(host)
      return rest ?? unready(tenantId)
    },
  })

  const comeBack = (host: LabHost, isCut: boolean): Work => ({
    name: 'removes what a returned host still has',
    points: [...releasing, 'converge.before', 'converge.step-before', 'converge.step-after'],
    async begin() {
      await (isCut ? host.connect(true) : host.start())
      away.delete(host)
    },
    async remaining() {
      const { state } = await shownHost(host)
      return state === 'reachable' ? onHost(host) : `${host.id} is ${String(state)}.`
    },
  })

  const single: Scenario = async () => {
    const { work, id } = create('database-per-tenant', creating)
    return [work, remove('database-per-tenant', id)]
  }
  const cluster: Scenario = async () => {
    const { work, id } = create('cluster-per-tenant', creating)
    return [work, rebalance(id), remove('cluster-per-tenant', id)]
  }
  const drained: Scenario = async () => {
    const shared = (await platform.primaryOf(platform.sharedCluster)).host
    const own = (await platform.primaryOf(tenantId)).host
    const host = chance.pick([shared, own, chance.pick(hosts)])
    return [drain(host, host === shared), activate(host)]
  }
  // The host without a control plane: the others continue with both.
  const lost: Scenario = async () => {
    const isCut = chance.happens(0.5)
    return [lose(hosts[2], isCut), comeBack(hosts[2], isCut), activate(hosts[2])]
  }
  return [single, single, cluster, drained, drained, lost]
}
