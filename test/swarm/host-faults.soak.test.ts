// Each fault of a platform on three hosts, again and again, under clients that write rows and upload files, of tenants with clusters and of
// tenants that share that of the region. No acknowledged row or file is lost, and writes continue during every fault but the loss of two
// hosts, and after that.
import { setTimeout as sleep } from 'node:timers/promises'
import t from 'tap'
import { until } from '#test/support/docker.ts'
import { effort } from '#test/support/effort.ts'
import type { LabHost } from '#test/support/swarm-lab.ts'
import { startSwarmPlatform, type SwarmPlatform } from '#test/support/swarm-platform.ts'
import { createForeignObjects } from './foreign-objects.ts'
import { startManyTenants, tenantsOfKind } from './many-tenants.ts'
import { courseOf, shown } from './shown.ts'

/**
 * The number of times that each fault occurs. Set `TENANTRY_ROUNDS`, and `TENANTRY_FAULTS` (`a,b`, with the beginning of a fault's name),
 * for a part of the full run.
 */
const rounds = Number(process.env['TENANTRY_ROUNDS'] ?? effort({ small: 1, full: 20 }))
const chosenFaults = process.env['TENANTRY_FAULTS']?.split(',')
/** Milliseconds between two requests of a client. */
const waitMs = 1_000
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
  const foreignStay = await createForeignObjects(platform.lab.hosts)
  const { owning, sharing, all, clusters, untilComplete, resetPauses, finish } = await startManyTenants(
    t,
    platform,
    tenantsOfKind,
    waitMs,
  )
  const untilWritten = () => {
    const counts = all.map(({ writer }) => writer.count())
    return Promise.all(all.map(({ writer }, at) => writer.acknowledged((counts[at] ?? 0) + 5, 180)))
  }
  const isChosen = ([name]: [string, Fault]) => chosenFaults?.some((beginning) => name.startsWith(beginning)) !== false

  for (const [name, { begin, isOutage }] of Object.entries(faultsOf(platform, clusters)).filter(isChosen)) {
    const kinds = { 'clusters of their own': owning, 'the shared cluster': sharing }
    const pauses = Object.entries(kinds).map(([kind, tenants]) => ({
      kind,
      tenants,
      writes: [] as number[],
      reads: [] as number[],
    }))
    const afterEnd: number[] = []
    for (let round = 0; round < rounds; round++) {
      await untilComplete()
      resetPauses()
      const end = await begin()
      if (isOutage !== true) await untilWritten()
      await sleep(lastingMilliseconds)
      if (isOutage !== true)
        for (const { tenants, writes, reads } of pauses) {
          writes.push(...tenants.map(({ writer }) => writer.takeMaxPause()))
          const readPauses = tenants.map(({ takeMaxReadPause }) => takeMaxReadPause())
          reads.push(...readPauses.map(({ milliseconds }) => milliseconds))
          for (const line of readPauses.flatMap(courseOf)) t.comment(line)
        }
      await end()
      const ended = performance.now()
      await untilWritten()
      if (isOutage === true) afterEnd.push(Math.round(performance.now() - ended))
      for (const host of platform.lab.hosts) await platform.untilHost(host, ({ state }) => state === 'reachable')
    }
    t.comment(`${name}, ${rounds} times; pauses in ms:`)
    if (isOutage === true) t.comment(`  writes of all tenants after its end: ${shown(afterEnd)}`)
    else
      for (const { kind, writes, reads } of pauses)
        t.comment(`  tenants with ${kind}: writes ${shown(writes)}; reads ${shown(reads)}`)
    t.pass(name)
  }
  await finish(t)
  await foreignStay(t)
})
