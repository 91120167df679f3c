// A member that can't follow the primary any more, because the primary no longer has the log that it needs, or because its Postgres
// can't start. Patroni does not copy such a member again by itself.
import { type Engine, EngineError } from '../engines/index.ts'
import { callPatroni } from './patroni-call.ts'
import type { ClusterMember, ClusterState } from './cluster-state.ts'

/** States of a replica that does not receive the log. A new copy has other states. */
const idleStates: readonly string[] = ['running', 'start failed', 'crashed']

/**
 * Returns the name of a replica that did not come closer to the primary between two states; undefined if there is none, or if the
 * others don't have all commits. Pure.
 */
export function stuckMember(before: ClusterState, after: ClusterState): string | undefined {
  if (!after.hasQuorum) return undefined
  return after.members.find((member) => {
    const earlier = before.members.find(({ name }) => name === member.name)
    return earlier !== undefined && isIdle(earlier) && isIdle(member) && !hasAdvanced(earlier, member)
  })?.name
}

const isIdle = ({ role, state }: ClusterMember) => role === 'replica' && idleStates.includes(state)

function hasAdvanced(before: ClusterMember, after: ClusterMember): boolean {
  if (after.timeline !== before.timeline) return true
  return before.lagBytes !== null && after.lagBytes !== null && after.lagBytes < before.lagBytes
}

/** A request to copy a member again from the primary. */
interface CopyCall {
  tenantId: string
  member: string
  /** Password of the user of Patroni that may change the cluster. */
  password: string
}

/** Lets a member remove its data and copy them again from the primary. @throws EngineError UNHEALTHY if Patroni rejects it */
export async function copyAgain(
  engine: Pick<Engine, 'exec'>,
  { tenantId, member, password }: CopyCall,
  signal: AbortSignal,
): Promise<void> {
  const request = { path: '/reinitialize', body: { force: true }, password } as const
  const { status, text } = await callPatroni(engine, tenantId, member, request, signal)
  if (status !== 200) throw new EngineError('UNHEALTHY', `Patroni does not copy ${member} again: ${text}`)
}
