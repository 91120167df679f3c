// Plans the next change of a running cluster's services, one service at a time, so that the cluster serves all the while. Pure. It
// is planned again from what was observed after each change, so that any interruption continues.
import {
  networksToLeave,
  type ObservedHost,
  reachablePart,
  serviceSteps,
  type Step,
  withoutReturned,
} from '../engines/index.ts'
import { clusterRouters, isClusterMember, networkName, type Stack } from '../stacks/index.ts'
import type { ClusterState } from './cluster-state.ts'

/** The next change of a cluster's services. */
export type ClusterStep =
  /** Converges all services but those that are held, whose containers stay as they are. */
  | { do: 'converge'; held: ReadonlySet<string> }
  /** Makes a member the primary, so that the present one can be replaced. */
  | { do: 'switch-over'; from: string; to: string }
  /** Nothing can be changed now. The message is public. */
  | { do: 'wait'; message: string }

/** Observations of a cluster at one instant. */
interface ObservedCluster {
  host: ObservedHost
  /** The state that Patroni reports; undefined if no member responds. */
  state: ClusterState | undefined
  /** Names of the routers that reach the primary. */
  readyRouters: ReadonlySet<string>
}

/** States of Patroni in which Postgres on a member does not run, and will not by itself. */
const brokenStates: readonly string[] = ['start failed', 'crashed', 'stopped']

/** Returns the names of the services that run and are not as specified. Changing one may interrupt it. */
export function servicesToChange(specified: Stack, observed: ObservedHost): string[] {
  const stack = reachablePart(specified, observed)
  return runningToChange(stack, withoutReturned(stack, observed))
}

/** Returns the names of all services that run, also of those that should be on a host which does not respond. */
export function runningServices(stack: Stack, observed: ObservedHost): string[] {
  const host = withoutReturned(stack, observed)
  return stack.services.map(({ name }) => name).filter((name) => isRunning(stack, host, name))
}

/** Returns the same for what can be changed of a stack, and what is observed of that. */
function runningToChange(stack: Stack, host: ObservedHost): string[] {
  if (stack.state === 'stopped') return []
  return differing(stack, host).filter((name) => isRunning(stack, host, name))
}

/**
 * Returns the next step for a stack. Services that do not run are repaired first, all together. Then each other service is
 * changed alone: the replicas, the former primary after a switchover, the routers, the runtimes. A member only stops while another
 * one confirms the primary's commits.
 */
export function planCluster(specified: Stack, { host: observed, state, readyRouters }: ObservedCluster): ClusterStep {
  const stack = reachablePart(specified, observed)
  const host = withoutReturned(stack, observed)
  const running = runningToChange(stack, host)
  const isAnyDown = stack.state === 'running' && differing(stack, host).some((name) => !running.includes(name))
  if (running.length === 0 || isAnyDown)
    return { do: 'converge', held: new Set([...running, ...laterLeaving(stack, host, state)]) }
  const change = (name: string): ClusterStep => ({
    do: 'converge',
    held: new Set(running.filter((other) => other !== name)),
  })

  const members = running.filter(isClusterMember)
  if (members.length > 0) return planMembers(members, stack, host, state, change)
  const [next = ''] = running
  const isRouter = clusterRouters.some((router) => router === next)
  if (!isRouter || [...readyRouters].some((router) => router !== next)) return change(next)
  return { do: 'wait', message: `The service ${next} is changed when another router reaches the primary.` }
}

function planMembers(
  members: readonly string[],
  stack: Stack,
  host: ObservedHost,
  state: ClusterState | undefined,
  change: (name: string) => ClusterStep,
): ClusterStep {
  if (state === undefined) return { do: 'wait', message: 'No member of the cluster responds.' }
  const stoppable = members.find((name) => canStop(name, state))
  if (stoppable !== undefined) return change(stoppable)
  const { primary, candidates } = state
  const next = members.find((name) => name !== primary) ?? primary ?? ''
  const waits = (what: string): ClusterStep => ({ do: 'wait', message: `The service ${next} is changed when ${what}.` })
  if (primary === undefined) return waits('the cluster has a primary')
  if (members.some((name) => name !== primary)) return waits('another replica confirms commits')
  if (isLiveChange(stepsOf(stack, host, primary)))
    return candidates.length > 0 ? change(primary) : waits('a replica confirms commits')
  const [to] = candidates
  // The former primary can only be replaced while another replica confirms the commits of the new one.
  return to !== undefined && candidates.length > 1
    ? { do: 'switch-over', from: primary, to }
    : waits('two replicas confirm commits')
}

/** Whether the cluster has its quorum without the member, or does not have it with the member either. */
function canStop(name: string, { primary, candidates, members }: ClusterState): boolean {
  // During an election, a member that runs may be the one that is elected.
  if (primary === undefined)
    return members.some((member) => member.name === name && brokenStates.includes(member.state))
  if (name === primary) return false
  return !candidates.includes(name) || candidates.length > 1
}

function differing(stack: Stack, host: ObservedHost): string[] {
  return stack.services.map(({ name }) => name).filter((name) => stepsOf(stack, host, name).length > 0)
}

function stepsOf(stack: Stack, host: ObservedHost, name: string): Step[] {
  const service = stack.services.find((candidate) => candidate.name === name)
  return service === undefined ? [] : serviceSteps(stack, service, host)
}

/** Whether a service continues while the steps are taken. */
function isLiveChange(steps: readonly Step[]): boolean {
  return steps.every((step) => step.do === 'update-resources')
}

/** Returns the members that leave an address and have to wait, because only one does at a time, the primary last. */
function laterLeaving(stack: Stack, host: ObservedHost, state: ClusterState | undefined): string[] {
  const leaves = (name: string) =>
    host.containers.some((one) => one.labels.service === name && networksToLeave(one, host).length > 0)
  const names = stack.services.map(({ name }) => name).filter((name) => isClusterMember(name) && leaves(name))
  const first = names.find((name) => name !== state?.primary) ?? names[0]
  return names.filter((name) => name !== first)
}

/** Whether a service has a container that runs and that others reach, at an address of its own. */
function isRunning(stack: Stack, host: ObservedHost, name: string): boolean {
  const networks = stack.services.find((service) => service.name === name)?.networks ?? []
  return host.containers.some(
    (container) =>
      container.labels.service === name &&
      container.state === 'running' &&
      networksToLeave(container, host).length === 0 &&
      networks.every(({ network }) => networkName(stack.id, network) in container.networks),
  )
}
