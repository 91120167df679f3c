// Kills the control planes of a platform on three hosts at failpoints of placement, drain and replacement: the one that leads, and the one
// that continues its work if that passes the failpoint again. Each work ends nevertheless. The hosts have exactly what the control database
// has placed there, and a tenant with a cluster, whose client writes for the whole time, loses no acknowledged row.
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import type { Isolation } from '#control-plane/stacks/isolation.ts'
import { effort, seed } from '#test/support/effort.ts'
import type { LabHost } from '#test/support/swarm-lab.ts'
import { startSwarmPlatform, type SwarmPlatform } from '#test/support/swarm-platform.ts'
import { chanceOf, type Chance } from '../simulation/chance.ts'
import { createScenarios, type Point, type Work } from './killed-work.ts'
import { startLoadedTenant } from './loaded-tenant.ts'
import {
  containerFormat,
  differences,
  parseContainers,
  type HostObjects,
  type PlacedService,
} from './placed-services.ts'

/** Number of kills of each control plane. Set `TENANTRY_ROUNDS` for a part of the full run. */
const wanted = Number(process.env['TENANTRY_ROUNDS'] ?? effort({ small: 2, full: 100 }))
/** Time for a work, and for what it leaves to be removed. */
const secondsToEnd = 300
/** Time in which a failpoint must be passed. */
const secondsToKill = 150
/** Time in which the other control plane may pass it, too. */
const secondsToFollow = 30

/** Waits until nothing remains. @throws Error with what remains, and the control planes' logs */
async function untilNothing(
  platform: SwarmPlatform,
  what: string,
  seconds: number,
  remaining: () => Promise<string | undefined>,
): Promise<void> {
  const deadline = performance.now() + seconds * 1000
  for (;;) {
    // While both control planes are killed, none responds.
    const rest = await remaining().catch((error: unknown) => String(error))
    if (rest === undefined) return
    if (performance.now() > deadline)
      throw new Error(`${what}: not in ${seconds} s. Remaining: ${rest}\n${await platform.logs()}`)
    await sleep(250)
  }
}

/** Returns the failpoints of works in a random order, each once before one is repeated. */
function createPoints(chance: Chance): (work: Work) => Point {
  const queues = new Map<string, Point[]>()
  return ({ name, points }) => {
    const queue = queues.get(name) ?? []
    if (queue.length === 0) queue.push(...points)
    const [point] = queue.splice(chance.below(queue.length), 1)
    queues.set(name, queue)
    return point ?? chance.pick(points)
  }
}

/** Returns the containers, volumes and networks of a host. */
async function objectsOf(host: LabHost): Promise<HostObjects> {
  const lines = (text: string) => text.split('\n').filter((line) => line !== '')
  const [containers, volumes, networks] = await Promise.all([
    host.docker('ps', '--all', '--filter', 'label=tenantry.stack', '--format', containerFormat),
    host.docker('volume', 'ls', '--format', '{{.Name}}'),
    host.docker('network', 'ls', '--format', '{{.Name}}'),
  ])
  return {
    host: host.id,
    containers: parseContainers(containers),
    volumes: lines(volumes),
    networks: lines(networks),
  }
}

/** Returns tenants that the region's etcd has users of, and that do not exist. */
async function unknownUsers(host: LabHost, tenants: ReadonlySet<string>): Promise<string[]> {
  const names = (await host.docker('ps', '--format', '{{.Names}}')).split('\n')
  const member = names.find((name) => /^tenantry-region-.*-etcd-/.test(name))
  if (member === undefined) return [`${host.id} runs no etcd.`]
  const users = await host.docker('exec', member, '/usr/local/bin/etcd-access', 'list')
  const ids = new Set(users.match(/t_[0-9a-f]{20}/g))
  return [...ids].filter((id) => !tenants.has(id)).map((id) => `etcd has a user of ${id}.`)
}

/** Returns what is not as it should be between two works: open operations, tenants that are not ready, remaining objects. */
async function unsettled(platform: SwarmPlatform, away: ReadonlySet<LabHost>): Promise<string | undefined> {
  const { hosts } = platform.lab
  const present = hosts.filter((host) => !away.has(host))
  const rows = await platform.sql(
    `select t.id, t.isolation, p.service, p.host_id from placements p join tenants t on t.id = p.tenant_id`,
  )
  const placed = rows.map((row): PlacedService => ({
    tenantId: String(row['id']),
    isolation: row['isolation'] as Isolation,
    service: String(row['service']),
    host: String(row['host_id']),
  }))
  const tenants = new Set(placed.map(({ tenantId }) => tenantId))
  const restless = await platform.sql(
    `select id, status, reason from tenants where status <> 'ready' or generation <> observed_generation`,
  )
  const open = await platform.sql(`select tenant_id, kind, step from operations where state in ('pending', 'running')`)
  const subnets = await platform.sql(`select stack_id from subnets where stack_id like 't\\_%'`)
  const swarm = await Promise.all(
    ['service', 'config', 'secret'].map(async (kind) => hosts[0].docker(kind, 'ls', '--quiet')),
  )
  const readiness = away.size > 0 ? true : await platform.readiness()
  const found = [
    ...differences(placed, await Promise.all(present.map(objectsOf))),
    ...(await unknownUsers(hosts[0], tenants)),
    ...restless.map((row) => `A tenant is not ready: ${JSON.stringify(row)}`),
    ...open.map((row) => `An operation is open: ${JSON.stringify(row)}`),
    ...subnets
      .filter((row) => !tenants.has(String(row['stack_id'])))
      .map((row) => `A subnet remains: ${JSON.stringify(row)}`),
    ...swarm.filter((text) => text !== '').map((text) => `The swarm has a service, config or secret: ${text}`),
    ...(readiness === true ? [] : [`The region's condition Ready is ${readiness}.`]),
  ]
  return found.length === 0 ? undefined : found.join('\n')
}

t.test('Each work ends after kills of the control planes', { timeout: 28_000_000 }, async (t) => {
  const platform = await startSwarmPlatform(t)
  const tenant = await startLoadedTenant(t, platform, 'ada', 'cluster-per-tenant')
  const chance = chanceOf(seed)
  const away = new Set<LabHost>()
  const scenarios = createScenarios({ platform, tenantId: tenant.id, chance, away })
  const nextPoint = createPoints(chance)
  const { controlHosts, armed } = platform
  const kills = new Map(controlHosts.map((host) => [host, 0]))
  const nextVictim = (): LabHost => {
    const [[host] = [platform.lab.hosts[0]]] = [...kills].toSorted(([, a], [, b]) => a - b)
    return host
  }
  const isEnough = () => [...kills.values()].every((count) => count >= wanted)
  const passed = new Set<string>()
  let rounds = 0

  /** Returns what a work has not done yet, and what it has not removed. */
  const restOf = async (work: Work): Promise<string | undefined> =>
    (await work.remaining()) ?? (await unsettled(platform, away))

  /**
   * Waits until the armed control planes are killed: the one that leads, and the one that continues, unless the work ends before.
   * @returns the hosts of those that were killed
   * @throws Error if none is killed
   */
  const untilKilled = async (work: Work, what: string): Promise<LabHost[]> => {
    const begin = performance.now()
    const since = (at: number) => (performance.now() - at) / 1000
    let firstAt: number | undefined
    let endedAt: number | undefined
    for (;;) {
      const killed = await armed.killed()
      if (killed.length > 0) firstAt ??= performance.now()
      if (killed.length === controlHosts.length) return killed
      const rest = await restOf(work).catch(String)
      if (firstAt !== undefined && (rest === undefined || since(firstAt) > secondsToFollow)) return armed.killed()
      if (rest === undefined) endedAt ??= performance.now()
      if (firstAt === undefined && (since(begin) > secondsToKill || (endedAt !== undefined && since(endedAt) > 10))) {
        const state = rest === undefined ? 'The work has ended.' : `Remaining: ${rest}`
        throw new Error(`No control plane was killed when it ${what}. ${state}\n${await platform.logs()}`)
      }
      await sleep(250)
    }
  }

  /** Carries out a work while a failpoint is armed, and until nothing of it remains. */
  const carryOut = async (work: Work): Promise<void> => {
    await work.prepare?.()
    const begin = performance.now()
    const point = isEnough() ? undefined : nextPoint(work)
    const what = `${work.name}, armed at ${point ?? 'no failpoint'}`
    if (point === undefined) await work.begin()
    else {
      const [name, pass = '1'] = point.split('@')
      await armed.arm(`${name}=kill@${pass}`, nextVictim())
      // The request may be lost with the control plane that received it.
      const isAccepted = await work.begin().then(
        () => true,
        () => false,
      )
      const killed = await untilKilled(work, what)
      const log = await platform.logs()
      for (const host of killed) kills.set(host, (kills.get(host) ?? 0) + 1)
      await armed.disarm().catch((cause: unknown) => {
        throw new Error(`The control planes did not start after their kill. Before:\n${log}`, { cause })
      })
      if (!isAccepted) await work.begin()
      passed.add(`${work.name} at ${point}`)
      rounds++
      t.comment(`${what}: killed on ${killed.map(({ id }) => id).join(' and ')}`)
    }
    await untilNothing(platform, `The control plane ${what}`, secondsToEnd, () => restOf(work))
    await platform.untilComplete(tenant.id)
    t.pass(`${what}, ended after ${((performance.now() - begin) / 1000).toFixed(1)} s`)
  }

  t.comment(`${wanted} kills of each control plane, seed ${seed}`)
  while (!isEnough()) for (const work of await chance.pick(scenarios)()) await carryOut(work)
  const counts = [...kills].map(([{ id }, count]) => `${count} on ${id}`).join(', ')
  t.comment(`kills: ${counts}, in ${rounds} rounds, at ${passed.size} failpoints of works`)
  t.ok(isEnough(), 'each control plane was killed as often as wanted')
  await tenant.untilReady()
  await tenant.finish(t)
})
