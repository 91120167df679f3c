// The members of a cluster as the API returns them.
import { Type, type Static } from 'typebox'
import type { ClusterMember } from './cluster-state.ts'

/** A member of a tenant's cluster, as Patroni reports it. */
export const ClusterMemberBody = Type.Object({
  name: Type.String(),
  role: Type.Enum(['primary', 'replica', 'absent']),
  state: Type.String({ description: "Patroni's state, such as running or streaming" }),
  lag_bytes: Type.Union([Type.Number(), Type.Null()], { description: 'Bytes of the log that it has not replayed' }),
  timeline: Type.Union([Type.Number(), Type.Null()]),
  synchronous: Type.Boolean({ description: 'Whether it may confirm commits of the primary' }),
})
type ClusterMemberBody = Static<typeof ClusterMemberBody>

/** Converts a member for the API. */
export function toMemberBody({
  name,
  role,
  state,
  lagBytes,
  timeline,
  isSynchronous,
}: ClusterMember): ClusterMemberBody {
  return { name, role, state, lag_bytes: lagBytes, timeline, synchronous: isSynchronous }
}
