// Decides which replica of a cluster has every acknowledged change, from the positions of its members. Pure.
import { sql, type Row } from '../statement.ts'

/** Requests the position of a member. The function belongs to the control plane (`replica-position.ts`). */
export const positionStatement = sql(
  'select server, timeline, received::text, replayed::text, members from tenantry.replica_position() where is_replica',
)

/** The part of the write-ahead log that a replica has. */
export interface ReplicaPosition {
  /** Address and port of the server, which no other member has. */
  server: string
  /** The newest timeline of which the replica has a part. A timeline that began later is greater, as a text too. */
  timeline: string
  /** The position up to which it has stored the log. It confirms no commit before that. */
  stored: bigint
  /** The position up to which queries see the log. */
  replayed: bigint
  /** The number of members that it knows, including itself. */
  members: number
}

/** A replica to read from. Its queries see every acknowledged change as soon as it has replayed the log up to `upTo`. */
export interface FreshReplica {
  server: string
  timeline: string
  upTo: bigint
}

/**
 * Reads the row of `positionStatement`.
 * @returns undefined for a primary, and for a replica that has not received anything since its start
 */
export function readPosition(row: Row | undefined): ReplicaPosition | undefined {
  const { server, timeline, received, replayed, members } = row ?? {}
  if (typeof server !== 'string' || typeof timeline !== 'string') return undefined
  if (typeof received !== 'string' || typeof replayed !== 'string' || typeof members !== 'number') return undefined
  const [one, other] = [toNumber(received), toNumber(replayed)]
  return { server, timeline, stored: one > other ? one : other, replayed: other, members }
}

/**
 * Returns a replica that has every change which was acknowledged before the positions were requested. A commit is acknowledged only
 * when two members have stored it, so all members but one suffice ([0055](../../../../docs/decisions/0055-reads-during-failover.md)).
 * @param known the number of members that the runtime knows. The replicas may know more, while a member gets another host
 * @returns undefined if the positions do not suffice: of too few members, or of different timelines
 */
export function freshReplica(positions: readonly ReplicaPosition[], known: number): FreshReplica | undefined {
  const members = Math.max(known, ...positions.map((position) => position.members))
  const servers = new Map(positions.map((position) => [position.server, position]))
  const byTimeline = Map.groupBy(servers.values(), ({ timeline }) => timeline)
  for (const [timeline, group] of byTimeline) {
    if (group.length < Math.max(2, members - 1)) continue
    const upTo = group.reduce((max, { stored }) => (stored > max ? stored : max), 0n)
    const found = group.find(({ replayed }) => replayed >= upTo) ?? group.find(({ stored }) => stored >= upTo)
    if (found !== undefined) return { server: found.server, timeline, upTo }
  }
  return undefined
}

/** Whether a query that began after this position was requested sees everything that the replica was chosen for. */
export function isFresh({ server, timeline, upTo }: FreshReplica, position: ReplicaPosition | undefined): boolean {
  return position?.server === server && position.timeline === timeline && position.replayed >= upTo
}

/** Converts Postgres' text of a position, such as `16/B374D848`. */
function toNumber(lsn: string): bigint {
  const [high = '0', low = '0'] = lsn.split('/')
  return (BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`)
}
