// Each fault of a platform on three hosts, again and again, under clients that write rows and upload files, of tenants with clusters and of
// tenants that share that of the region. No acknowledged row or file is lost, and writes continue during every fault but the loss of two
// hosts, and after that.
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { until } from '#test/support/docker.ts'
import { effort } from '#test/support/effort.ts'
import type { LabHost } from '#test/support/swarm-lab.ts'
import { startSwarmPlatform, type SwarmPlatform } from '#test/support/swarm-platform.ts'
import { startLoadedTenant } from './loaded-tenant.ts'

const rounds = effort({ small: 1, full: 20 })
/** The time for which the fault lasts after the writes continue. */
const lastingMilliseconds = 5_000

/** A fault. Its beginning returns how it ends. */
interface Fault {
  begin(): Promise<() => Promise<unknown>>
  /** Whether no write is possible meanwhile. */
  isOutage?: boolean
}

/** @param clusters IDs of the clusters; the primary of one of them is on the host that fails, in turn */
function faultsOf(platform: SwarmPlatform, clusters: readonly string[]): Record<string, Fault> {
  const { hosts } = platform.lab
  let turn = 0
  const primaryHost = async () => (await platform.primaryOf(clusters[turn++ % clusters.length] ?? '')).host
  // The managers elect a leader for some seconds after a fault. Until then they don't respond.
  const swarmLeader = (): Promise<LabHost> =>
    until(async () => {
      const format = ['node', 'inspect', 'self', '--format', '{{.ManagerStatus.Leader}}']
      const states = await Promise.all(hosts.map((host) => host.docker(...format).catch(() => '')))
      return hosts[states.indexOf('true')]
    }, 60)
  const kill = async (...killed: LabHost[]) => {
    for (const host of killed) host.kill()
    return () => Promise.all(killed.map((host) => host.start()))
  }
  const cutOff = async (host: LabHost) => {
    await host.connect(false)
    return () => host.connect(true)
  }
  return {
    'the host of a primary is killed': { begin: async () => kill(await primaryHost()) },
    'the host of a primary is cut off': { begin: async () => cutOff(await primaryHost()) },
    "the swarm's leader is killed": { begin: async () => kill(await swarmLeader()) },
    'the leading control plane is cut off': { begin: async () => cutOff(await platform.leader()) },
    'two of three hosts are killed': {
      begin: () => kill(hosts[turn % 3] ?? hosts[0], hosts[++turn % 3] ?? hosts[1]),
      isOutage: true,
    },
    'the control database is killed': {
      async begin() {
        await platform.crashControlDatabase()
        return () => Promise.resolve()
      },
    },
    'the S3 server is unreachable': {
      async begin() {
        platform.connectStorage(false)
        return async () => platform.connectStorage(true)
      },
    },
  }
}

t.test('Tenants continue during every fault', { timeout: 28_000_000 }, async (t) => {
  const platform = await startSwarmPlatform(t)
  const tenants = [
    await startLoadedTenant(t, platform, 'ada', 'cluster-per-tenant'),
    await startLoadedTenant(t, platform, 'bob', 'schema-per-tenant'),
  ]
  const clusters = [tenants[0]?.id ?? '', platform.sharedCluster]
  const untilComplete = () => Promise.all(clusters.map((cluster) => platform.untilComplete(cluster)))
  const reset = () => {
    for (const { writer, takeMaxReadPause } of tenants) {
      writer.takeMaxPause()
      takeMaxReadPause()
    }
  }
  const untilWritten = () => {
    const counts = tenants.map(({ writer }) => writer.count())
    return Promise.all(tenants.map(({ writer }, at) => writer.acknowledged((counts[at] ?? 0) + 20, 180)))
  }

  for (const [name, { begin, isOutage }] of Object.entries(faultsOf(platform, clusters))) {
    const [writes, reads]: [number[], number[]] = [[], []]
    for (let round = 0; round < rounds; round++) {
      await untilComplete()
      reset()
      const end = await begin()
      if (isOutage !== true) await untilWritten()
      await sleep(lastingMilliseconds)
      if (isOutage !== true) {
        writes.push(Math.max(...tenants.map(({ writer }) => writer.takeMaxPause())))
        reads.push(Math.max(...tenants.map(({ takeMaxReadPause }) => takeMaxReadPause())))
      }
      await end()
      const ended = performance.now()
      await untilWritten()
      if (isOutage === true) writes.push(Math.round(performance.now() - ended))
      for (const host of platform.lab.hosts) await platform.untilHost(host, ({ state }) => state === 'reachable')
    }
    const pauses = `writes ${shown(writes)}${reads.length === 0 ? ' after its end' : `, reads ${shown(reads)}`}`
    t.comment(`${name}, ${rounds} times, pauses in ms: ${pauses}`)
    t.pass(name)
  }
  await untilComplete()
  for (const { untilReady, finish } of tenants) {
    await untilReady()
    await finish(t)
  }
})

/** Returns the median, the 95th percentile and the maximum. */
function shown(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? 0
  return `median ${at(0.5)}, p95 ${at(0.95)}, at most ${at(1)}`
}
