// What the relay uses of a tenant's hub.
import type { SentBroadcast } from '../protocol/frame.ts'
import type { RelayedEntry, TopicName } from './relay-frame.ts'

/** The presence of a topic's own channels. */
export interface LocalPresence extends TopicName {
  /** Returns the entries at the time of the call. */
  entries(): RelayedEntry[]
}

/** A tenant with connected clients. */
export interface RelayedTenant {
  readonly tenantId: string
  /** Sends another runtime's broadcast to this runtime's clients. Returns false when too many messages wait. */
  deliver(name: string, isPrivate: boolean, broadcast: SentBroadcast): boolean
  /** Adds another runtime's entry of presence. */
  addRemote(topic: TopicName, entry: RelayedEntry): void
  /** Removes another runtime's entry of presence. */
  removeRemote(topic: TopicName, ref: string): void
  localPresence(): LocalPresence[]
}
