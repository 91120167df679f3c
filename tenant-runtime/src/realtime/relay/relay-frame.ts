// The frames between two runtimes that serve the same tenants: JSON texts, and binary frames for broadcasts. Pure.
import { Type, type Static } from 'typebox'
import { Value } from 'typebox/value'
import type { SentBroadcast } from '../protocol/frame.ts'

/** A topic of a tenant, as clients name it: `realtime:<name>`. A private topic and a public one of the same name differ. */
export interface TopicName {
  topic: string
  isPrivate: boolean
}

/** An entry of presence as the other runtimes receive it. Its meta contains `phx_ref`, which no other entry has. */
const RelayedEntry = Type.Object({
  key: Type.String(),
  meta: Type.Intersect([Type.Object({ phx_ref: Type.String() }), Type.Record(Type.String(), Type.Unknown())]),
})
export type RelayedEntry = Static<typeof RelayedEntry>

/** A change of presence: the reference of the entry that has left, the entry that has joined, or both. */
export interface PresenceChange {
  left?: string
  joined?: RelayedEntry
}

const OfTenant = { tenantId: Type.String(), number: Type.Integer() }

const TextFrame = Type.Union([
  /** The first frame of the runtime that is followed. `instance` is a new text for every start of a process. */
  Type.Object({ kind: Type.Literal('hello'), instance: Type.String() }),
  Type.Object({ kind: Type.Literal('alive') }),
  /** IDs of sessions of developers' consoles that a sign-out has ended. */
  Type.Object({ kind: Type.Literal('ended'), sessions: Type.Array(Type.String()) }),
  /** The follower wants a tenant's messages. `number` is the follower's own, and returns in the next two. */
  Type.Object({ kind: Type.Literal('follow'), ...OfTenant }),
  /** From here on, frames of the tenant belong to the request of this number. */
  Type.Object({ kind: Type.Literal('following'), ...OfTenant }),
  /** All entries of presence that existed at `following` have been sent. */
  Type.Object({ kind: Type.Literal('synced'), ...OfTenant }),
  Type.Object({ kind: Type.Literal('unfollow'), tenantId: Type.String() }),
  Type.Object({
    kind: Type.Literal('presence'),
    tenantId: Type.String(),
    topic: Type.String(),
    isPrivate: Type.Boolean(),
    left: Type.Optional(Type.String()),
    joined: Type.Optional(RelayedEntry),
  }),
])
export type TextFrame = Static<typeof TextFrame>

const BroadcastHead = Type.Tuple([
  Type.String(),
  Type.String(),
  Type.Boolean(),
  Type.String(),
  Type.Union([Type.Literal('json'), Type.Literal('bytes')]),
])

/** A broadcast of another runtime. */
export interface RelayedBroadcast extends TopicName {
  kind: 'broadcast'
  tenantId: string
  broadcast: SentBroadcast
}

/** A frame that cannot be read. */
export class RelayFrameError extends Error {}

/** The bytes before the head of a broadcast, which contain its length. */
const prefixBytes = 4

export function encodeText(frame: TextFrame): string {
  return JSON.stringify(frame)
}

/** Encodes a broadcast: the length of the head in four bytes, the head as JSON, and the payload as it is. */
export function encodeRelayed(tenantId: string, { topic, isPrivate }: TopicName, broadcast: SentBroadcast): Buffer {
  const { event, content } = broadcast
  const head = Buffer.from(JSON.stringify([tenantId, topic, isPrivate, event, content.kind]))
  const prefix = Buffer.allocUnsafe(prefixBytes)
  prefix.writeUInt32BE(head.length)
  return Buffer.concat([prefix, head, content.kind === 'json' ? Buffer.from(content.text) : content.bytes])
}

/**
 * Reads a frame.
 * @throws RelayFrameError
 */
export function readRelayFrame(data: Buffer, isBinary: boolean): TextFrame | RelayedBroadcast {
  if (isBinary) return readRelayed(data)
  const frame = parse(data.toString())
  if (!Value.Check(TextFrame, frame)) throw new RelayFrameError('The frame is none of those between runtimes.')
  return frame
}

function readRelayed(data: Buffer): RelayedBroadcast {
  const begin = prefixBytes + (data.length < prefixBytes ? 0 : data.readUInt32BE(0))
  if (data.length < prefixBytes || begin > data.length) throw new RelayFrameError('The broadcast ends in its head.')
  const head = parse(data.toString('utf8', prefixBytes, begin))
  if (!Value.Check(BroadcastHead, head)) throw new RelayFrameError('The head of the broadcast is not valid.')
  const [tenantId, topic, isPrivate, event, kind] = head
  const bytes = data.subarray(begin)
  const content = kind === 'json' ? { kind, text: bytes.toString() } : { kind, bytes }
  return { kind: 'broadcast', tenantId, topic, isPrivate, broadcast: { event, content, length: bytes.length } }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch (cause) {
    throw new RelayFrameError('The frame is not JSON.', { cause })
  }
}
