// Each fault of a host, again and again, at the host with the primary of a cluster, under a client that writes rows and one that uploads
// files: the host dies and starts again; it is cut off from the others and comes back.
import t from 'tap'
import { effort } from '#test/support/effort.ts'
import type { LabHost } from '#test/support/swarm-lab.ts'
import { startSwarmPlatform } from '#test/support/swarm-platform.ts'
import { startLoadedCluster } from './loaded-cluster.ts'

const rounds = effort({ small: 1, full: 20 })
/** The time for which the host is away after the writes continue. */
const awayMilliseconds = 5_000

const faults: Record<string, { begin: (host: LabHost) => unknown; end: (host: LabHost) => Promise<void> }> = {
  'the host is killed': { begin: (host) => host.kill(), end: (host) => host.start() },
  'the host is cut off': { begin: (host) => host.connect(false), end: (host) => host.connect(true) },
}

t.test('A cluster continues during every fault of a host', { timeout: 28_000_000 }, async (t) => {
  const platform = await startSwarmPlatform(t)
  const { hosts } = platform.lab
  const { id, writer, untilReady, finish } = await startLoadedCluster(t, platform, 'ada')
  for (const [fault, { begin, end }] of Object.entries(faults)) {
    const pauses: number[] = []
    for (let round = 0; round < rounds; round++) {
      await platform.untilComplete(id)
      const primary = await platform.primaryOf(id)
      const names = await Promise.all(hosts.map((host) => platform.containersOf(host, id)))
      const host = hosts[names.findIndex((own) => own.some((name) => name.includes(`-${primary}-`)))] ?? hosts[0]
      const count = writer.count()
      writer.takeMaxPause()
      await begin(host)
      await writer.acknowledged(count + 20, 180)
      await new Promise((resolve) => setTimeout(resolve, awayMilliseconds))
      pauses.push(writer.takeMaxPause())
      await end(host)
      await platform.untilHost(host, ({ state }) => state === 'reachable')
    }
    pauses.sort((a, b) => a - b)
    const p95 = pauses[Math.ceil(pauses.length * 0.95) - 1] ?? 0
    t.comment(`${fault}: ${rounds} times, pause at p95 ${p95} ms, longest ${pauses.at(-1) ?? 0} ms`)
    t.pass(fault)
  }
  await platform.untilComplete(id)
  await untilReady()
  await finish(t)
})
