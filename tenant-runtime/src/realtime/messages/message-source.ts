// Sends the broadcasts that are written to a tenant's table `realtime_messages`, as soon as they are committed.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Tenant } from '../../tenancy/tenant.ts'
import { LogFollower } from '../log-follower.ts'
import type { Replay } from './replay.ts'
import { hasMessages, readMessages, type StoredMessage } from './stored-messages.ts'
import { NoMessagesTableError } from './topic-rights.ts'

interface MessageSourceOptions {
  tenantNow: () => Tenant | undefined
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  /** Returns the maximum bytes of a message that can be sent. */
  maxBytes: () => number
  /** Sends a message to the clients, or reports one that is too large. Returns false when too many messages wait. */
  send: (message: StoredMessage) => boolean
  onError: (error: Error) => void
}

/** Milliseconds after which a table that was missing is searched again. */
const checkMs = 5_000
/** Milliseconds before a message is sent again for which the queue had no capacity. */
const fullMs = 50

export class MessageSource {
  readonly #options: MessageSourceOptions
  readonly #log: LogFollower
  /** The replays of joins in progress. */
  readonly #replays = new Set<Replay>()
  /** The time of the last check that found no table. */
  #missingAt = -Infinity
  #starting: Promise<void> | undefined
  #isStopped = false

  constructor(options: MessageSourceOptions) {
    this.#options = options
    this.#log = new LogFollower({
      sequence: 'realtime_messages_id_seq',
      tenantNow: options.tenantNow,
      read: (tenant, after, upTo) => this.#readPage(tenant, after, upTo),
      onError: options.onError,
    })
  }

  /**
   * Follows the table, if the tenant has one. Calls at the same time share one check.
   * @throws RoundTripError, RuntimeError when the database does not respond
   */
  async start(tenant: Tenant): Promise<void> {
    if (this.#log.isRunning || this.#isStopped) return
    this.#starting ??= this.#begin(tenant).finally(() => (this.#starting = undefined))
    await this.#starting
  }

  /** Stops for good. */
  stop(): void {
    this.#isStopped = true
    this.#log.stop()
  }

  /** Notifies the source that there may be new messages. */
  notify(): void {
    this.#log.notify()
  }

  /** Adds to a replay what is sent to its topic, until it is closed. */
  open(replay: Replay): void {
    this.#replays.add(replay)
  }

  close(replay: Replay): void {
    this.#replays.delete(replay)
  }

  async #begin(tenant: Tenant): Promise<void> {
    const { elapsed } = this.#options
    if (elapsed() - this.#missingAt < checkMs) return
    if (!(await hasMessages(tenant))) {
      this.#missingAt = elapsed()
      return
    }
    await this.#log.start()
    if (this.#isStopped) this.#log.stop()
  }

  async #readPage(tenant: Tenant, after: bigint, upTo: bigint): Promise<bigint> {
    try {
      let position = after
      const messages = await readMessages(tenant, after, upTo, this.#options.maxBytes())
      for (const message of messages) {
        // The log waits while the clients' queue is full.
        if (!this.#options.send(message)) {
          await sleep(fullMs)
          return position
        }
        if (message.isPrivate && message.payload !== undefined)
          for (const replay of this.#replays) if (replay.topic === message.topic) replay.add(message)
        position = message.id
      }
      return messages.length === 0 ? upTo : position
    } catch (error) {
      // The tenant has dropped the table.
      if (!(error instanceof NoMessagesTableError)) throw error
      this.#log.stop()
      return upTo
    }
  }
}
