// Faults of hosts and of containers, in a region on several hosts: power losses, partitions, crashed programs, manual changes.
import type { Chance } from '../chance.ts'
import { containerChanges } from '../accidents.ts'
import { dockerCli } from '../docker.ts'
import type { Scheduler } from '../scheduler.ts'
import type { Machines } from './hosts.ts'

interface HostAccidentsOptions {
  machines: Machines
  chance: Chance
  scheduler: Scheduler
  installation: string
}

/** Maximum time in milliseconds for which a host is away. */
export const maxAbsenceMs = 90_000

/** Creates the accidents. @returns a function that lets one happen */
export function createHostAccidents({ machines, chance, scheduler, installation }: HostAccidentsOptions): () => void {
  const traceFault = (what: string) => scheduler.trace(`by hand: ${what}`)
  const absence = () => chance.pick([chance.between(500, 8_000), chance.between(8_000, maxAbsenceMs)])

  const accidents: (() => void)[] = [
    ...Array.from({ length: 4 }, () => () => {
      const { id, docker } = chance.pick(machines.all)
      const own = [...docker.containers.values()].filter(({ labels }) => labels?.installation === installation)
      if (own.length === 0) return
      const container = chance.pick(own)
      const changes = containerChanges(docker)
      const at = chance.below(changes.length)
      traceFault(`change ${at} of ${container.name} on ${id}`)
      changes[at]?.(container)
    }),
    ...Array.from({ length: 3 }, () => () => {
      const host = chance.pick(machines.all)
      const milliseconds = absence()
      traceFault(`the host ${host.id} loses its power for ${Math.round(milliseconds)} ms`)
      host.docker.restart(milliseconds)
    }),
    ...Array.from({ length: 3 }, () => () => {
      const host = chance.pick(machines.all)
      const milliseconds = absence()
      traceFault(`the host ${host.id} is cut off for ${Math.round(milliseconds)} ms`)
      machines.cutOff(host, milliseconds)
    }),
    () => {
      traceFault('all hosts lose their power')
      for (const { docker } of machines.all) docker.restart(chance.between(1_000, 30_000))
    },
    () => {
      const { id, docker } = chance.pick(machines.all)
      const [network] = [...machines.networks.values()].filter(({ labels }) => labels?.installation === installation)
      const member = network && docker.membersOf(network.id)[0]
      if (network === undefined || member === undefined) return
      traceFault(`disconnect ${member.name} on ${id} from ${network.name}`)
      docker.leave(network.name, member.name, dockerCli)
    },
    () => {
      for (const { docker } of machines.all) docker.endStreams()
    },
  ]
  return () => chance.pick(accidents)()
}
