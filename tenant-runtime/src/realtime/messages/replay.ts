// The stored messages that a join requests: those in the table, and those that are sent to others while the client joins. A
// channel receives what is sent later, so nothing is missed between the two.
import type { Tenant } from '../../tenancy/tenant.ts'
import type { ReplayRequest } from '../protocol/join-config.ts'
import { readReplayed, type StoredMessage } from './stored-messages.ts'

export class Replay {
  /** The topic without `realtime:`. */
  readonly topic: string
  readonly #request: ReplayRequest
  #stored: StoredMessage[] = []
  readonly #sent: StoredMessage[] = []

  constructor(topic: string, request: ReplayRequest) {
    this.topic = topic
    this.#request = request
  }

  /** The newest messages, the oldest first. */
  get messages(): StoredMessage[] {
    const ids = new Set(this.#stored.map(({ id }) => id))
    const all = [...this.#stored, ...this.#sent.filter(({ id }) => !ids.has(id))]
    return all.sort((one, other) => (one.id < other.id ? -1 : 1)).slice(-this.#request.limit)
  }

  /** The ID of the oldest message that the channel receives: older ones are beyond the limit. */
  get oldest(): bigint {
    const { messages } = this
    return (messages.length === this.#request.limit ? messages[0]?.id : undefined) ?? 0n
  }

  /** Reads the messages in the table. @throws RoundTripError, RuntimeError when the database does not respond */
  async read(tenant: Tenant, maxBytes: number): Promise<void> {
    this.#stored = await readReplayed(tenant, this.topic, this.#request.since, this.#request.limit, maxBytes)
  }

  /** Adds a message that is sent to the topic now. */
  add(message: StoredMessage): void {
    this.#sent.push(message)
    if (this.#sent.length > this.#request.limit) this.#sent.shift()
  }
}
