// Commands inside the containers of a region on several hosts: etcd-access in etcd, requests to Patroni in members, checks of
// routers, and work on homes.
import type { Actor } from '../control-plane.ts'
import { clusterOf, type Container } from '../docker-objects.ts'
import { runInside, type CommandResult } from '../home-programs.ts'
import { networkName } from '#control-plane/stacks/object-names.ts'
import type { Etcd } from './etcd.ts'
import type { Machines, SimulatedMachine } from './hosts.ts'
import type { Member, Patroni } from './patroni.ts'

const failed: CommandResult = { code: 1, stdout: '' }
const done = (stdout = ''): CommandResult => ({ code: 0, stdout })
/** Work on a home that changes the database. */
const changes: readonly string[] = ['create', 'repair', 'drop']

export type ClusterPrograms = ReturnType<typeof createClusterPrograms>

interface ClusterProgramsOptions {
  machines: Machines
  etcd: Etcd
  patroni: Patroni
  /** Called when the creation or the removal of a home was confirmed. */
  onConfirmed: (stack: string, work: string, tenantId: string) => void
}

export function createClusterPrograms({ machines, etcd, patroni, onConfirmed }: ClusterProgramsOptions) {
  const etcdAccess = (host: SimulatedMachine, container: Container, [work, cluster = '']: readonly string[]) => {
    if (work === 'replace' && !etcd.hasBegun()) return { code: 3, stdout: '' }
    if (!etcd.hasQuorum({ host, container })) return failed
    switch (work) {
      case 'add':
        patroni.open(cluster)
        return done()
      case 'begun':
        return done(`${patroni.begun(cluster)}\n`)
      case 'replace':
        return etcd.replace({ host, container }, cluster) ? done() : failed
      case 'remove':
        patroni.close(cluster)
        return done()
      default:
        throw new Error(`The simulated etcd has no command ${work ?? ''}.`)
    }
  }

  const response = (reason: string | undefined): CommandResult =>
    done(`HTTP/1.0 ${reason === undefined ? 200 : 503} -\r\n\r\n${reason ?? 'done'}`)
  const request = (member: Member, text: string): CommandResult => {
    const [head = '', body = ''] = text.split('\r\n\r\n')
    if (head.startsWith('POST /reinitialize ')) return response(patroni.copyAgain(member))
    if (head.startsWith('POST /switchover '))
      return response(patroni.switchOver(member, JSON.parse(body) as { leader: string; candidate: string }))
    throw new Error(`The simulated Patroni has no request ${head.slice(0, 40)}.`)
  }

  /** Whether a router reaches the primary of its stack. */
  const isReady = (host: SimulatedMachine, container: Container): boolean => {
    const stack = container.labels?.stack ?? ''
    const primary = patroni.primaryOf(stack)
    return primary !== undefined && machines.reaches({ host, container }, primary, networkName(stack, 'net'))
  }

  /** Does work on a home in a cluster. Only the primary can. */
  const homeWork = (member: Member, command: readonly string[], actor: Actor): CommandResult => {
    const { host, container, volume, stack } = member
    if (patroni.primaryOf(stack)?.container !== container) return failed
    const run = () => runInside(host.docker, container, volume, command, actor)
    const [, work = '', tenantId = ''] = command
    const code = changes.includes(work) ? patroni.commit(member, run) : run()
    if (code === 0 && changes.includes(work)) onConfirmed(stack, work, tenantId)
    return { code, stdout: '' }
  }

  return {
    isReady,
    homeWork,
    /** Runs a command in a container that runs. */
    run(
      host: SimulatedMachine,
      container: Container,
      command: readonly string[],
      input: string,
      actor: Actor,
    ): CommandResult {
      if (!host.docker.responds(container)) return failed
      const [program = '', ...rest] = command
      const member = patroni.memberIn(container)
      if (program.endsWith('/etcd-access')) return etcdAccess(host, container, rest)
      if (program.endsWith('/is-ok')) return isReady(host, container) ? done() : failed
      if (member !== undefined && program.endsWith('/http-get')) {
        const report = patroni.report(member)
        return report === undefined ? failed : done(`HTTP/1.0 200 OK\r\n\r\n${JSON.stringify(report)}`)
      }
      if (member !== undefined && program === 'bash') return request(member, input)
      if (member !== undefined && program === 'home') return homeWork(member, command, actor)
      const volume = host.docker.volumes.get(clusterOf(container) ?? '')
      return { code: runInside(host.docker, container, volume, command, actor), stdout: '' }
    },
  }
}
