// The region's etcd, with what the control plane depends on: a member counts for the majority only with the data with which it has entered
// the cluster. An empty one enters it after another member has replaced it.
import { networkName, volumeName } from '#control-plane/stacks/object-names.ts'
import type { Volume } from '../docker-objects.ts'
import type { Located, Machines } from './hosts.ts'

interface EtcdOptions {
  machines: Machines
  regionStack: string
}

export type Etcd = ReturnType<typeof createEtcd>

const memberCount = 3

export function createEtcd({ machines, regionStack }: EtcdOptions) {
  /** The data of each member by the name of its service; undefined for one that was replaced and has not entered yet. */
  const members = new Map<string, Volume | undefined>()
  const nameOf = ({ container }: Located) => container.labels?.service ?? ''
  const volumeOf = (one: Located): Volume | undefined =>
    one.host.docker.volumes.get(volumeName(regionStack, nameOf(one)))
  const hasEntered = (one: Located) => volumeOf(one) !== undefined && members.get(nameOf(one)) === volumeOf(one)
  const running = (): Located[] =>
    machines.responding(regionStack).filter(({ container }) => container.labels?.service?.startsWith('etcd-'))
  const reaches = (one: Located, other: Located) => machines.reaches(one, other, networkName(regionStack, 'net'))
  const entered = (from: Located): Located[] => running().filter((one) => hasEntered(one) && reaches(from, one))

  /** Lets members enter that may: all at once when the cluster begins, and later one that was replaced. */
  const enter = () => {
    const all = running()
    const [first] = all
    if (members.size === 0) {
      if (first === undefined || all.length < memberCount) return
      if (all.every((one) => reaches(first, one))) for (const one of all) members.set(nameOf(one), volumeOf(one))
      return
    }
    for (const one of all)
      if (members.has(nameOf(one)) && members.get(nameOf(one)) === undefined && entered(one).length >= 2)
        members.set(nameOf(one), volumeOf(one))
  }

  return {
    hasBegun: () => members.size > 0,
    /** Returns the members that run and are in the cluster. */
    members(): Located[] {
      enter()
      return running().filter(hasEntered)
    },

    /** Whether a member is in the cluster and reaches a majority. */
    hasQuorum(one: Located): boolean {
      enter()
      return hasEntered(one) && entered(one).length >= 2
    },

    /** Replaces a member. @returns whether another one with a quorum has done it */
    replace(by: Located, name: string): boolean {
      if (!this.hasQuorum(by) || nameOf(by) === name || entered(by).some((one) => nameOf(one) === name)) return false
      members.set(name, undefined)
      return true
    },
  }
}
