// A host is lost with all its data, and an empty machine replaces it under the same name.
import type { Chance } from '../chance.ts'
import type { ControlDatabase } from '../control-database.ts'
import { dockerCli } from '../docker.ts'
import type { Scheduler } from '../scheduler.ts'
import type { Etcd } from './etcd.ts'
import type { Machines, SimulatedMachine } from './hosts.ts'
import type { Patroni } from './patroni.ts'

interface EmptyMachinesOptions {
  machines: Machines
  etcd: Etcd
  patroni: Patroni
  database: ControlDatabase
  chance: Chance
  scheduler: Scheduler
  installation: string
}

/** Time in milliseconds that the replacement of a machine takes at most. */
const maxReplacementMs = 60_000
const wipeMilliseconds = 5_000

/** Returns a function that replaces a host of which everything else has a copy; false if there is none. */
export function createEmptyMachines(options: EmptyMachinesOptions): () => boolean {
  const { machines, etcd, patroni, database, chance, scheduler, installation } = options
  const own = <T extends { labels: { installation: string } | undefined }>(objects: Iterable<T>) =>
    [...objects].filter(({ labels }) => labels?.installation === installation)

  /**
   * Whether each copy of data on the host has two others, which no other loss can remove at the same time, and of which one can become the
   * primary.
   */
  const isCopied = (host: SimulatedMachine): boolean => {
    const others = machines.all.filter((other) => other !== host)
    if (etcd.members().filter((one) => one.host !== host).length < 2) return false
    return own(host.docker.volumes.values()).every((volume) => {
      const stack = volume.labels?.stack ?? ''
      if (database.tenants.get(stack)?.isolation === 'database-per-tenant') return false
      if (!volume.isCluster) return true
      if (!patroni.survivesLossOf(host.id, stack)) return false
      const copies = others.flatMap(({ docker }) => own(docker.volumes.values()))
      const homes = new Set(
        copies.filter(({ labels }) => labels?.stack === stack).flatMap((one) => [...one.homes.keys()]),
      )
      const whole = copies.filter(
        (one) =>
          one.labels?.stack === stack &&
          one.isCluster &&
          [...homes, ...volume.homes.keys()].every((id) => one.homes.has(id)),
      )
      return whole.length >= 2
    })
  }

  const wipe = ({ docker }: SimulatedMachine) => {
    for (const { id } of own(docker.containers.values())) docker.removeContainer(id, dockerCli)
    // A container may be removed some time later.
    scheduler.after(wipeMilliseconds / 2, () => {
      for (const { name } of own(docker.volumes.values())) docker.removeVolume(name, dockerCli)
    })
  }

  return () => {
    const host = chance.pick(machines.all)
    if (machines.all.some(({ docker }) => !docker.isReachable()) || !isCopied(host)) return false
    const milliseconds = chance.between(wipeMilliseconds, maxReplacementMs)
    scheduler.trace(`by hand: an empty machine replaces the host ${host.id} after ${Math.round(milliseconds)} ms`)
    host.docker.restart(milliseconds)
    wipe(host)
    return true
  }
}
