// Those who follow a log of a tenant's as server-sent events: how many there may be, one feed for all of a tenant's, and
// their end when the tenant changes, the service stops or their credentials are no longer good.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { RuntimeError } from '../errors.ts'
import { corsHeaders } from '../http/cors.ts'
import { credentialsOf, type Authenticator } from '../tenancy/authenticate.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { readLog, type EventPage, type LogSequence } from './event-reader.ts'
import { Ended, followEvents, type End, type Pace, type Subscription } from './follow-events.ts'
import { TenantFeed } from './tenant-feed.ts'

interface FollowersOptions {
  /** Numbers the log's rows. */
  sequence: LogSequence
  /** What is followed, for messages. */
  what: string
  /** Of one tenant at once, in this process. */
  most: number
  authenticator: Authenticator
  tenantOf: (tenantId: string) => Tenant | undefined
  pace?: Pace | undefined
  /** A row may hold several entries; then an entry's place is the row's number times this, and more. */
  positionsPerRow?: bigint
}

interface Following {
  /** The last entry that they have; undefined for whoever wants what comes from now on. */
  last: bigint | undefined
  /** Entries behind `after`, `upTo` included. */
  read(after: bigint, upTo: bigint): Promise<EventPage>
}

interface Followed {
  feed: TenantFeed
  subscribers: number
  over: AbortController
}

const changed: End = { code: 'TENANT_CHANGED', message: 'the tenant has changed; connect again with the last id' }
const stopping: End = { code: 'STOPPING', message: 'the service is stopping; connect again with the last id' }

export class Followers {
  readonly #options: FollowersOptions
  readonly #slots: bigint
  readonly #followed = new Map<string, Followed>()

  constructor(options: FollowersOptions) {
    this.#options = options
    this.#slots = options.positionsPerRow ?? 1n
  }

  /**
   * Answers the request until its end.
   * @throws RuntimeError INVALID_EVENT_ID, TOO_MANY_SUBSCRIBERS
   */
  async serve(request: FastifyRequest, reply: FastifyReply, { last, ...following }: Following): Promise<void> {
    const { tenant } = request
    const known = this.#enter(tenant)
    const { feed, over } = known
    try {
      const newest = this.#lastPosition(await feed.poll())
      if (last !== undefined && last > newest)
        throw new RuntimeError(
          'INVALID_EVENT_ID',
          `the log ends before the event ${last}: it may have been restored; connect without Last-Event-ID`,
        )
      void reply.hijack()
      const subscription: Subscription = {
        headers: corsHeaders(request),
        after: last,
        // The row of the next place may be the one that they have read in part.
        beyond: async (after, signal) => this.#lastPosition(await feed.beyond((after + 1n) / this.#slots - 1n, signal)),
        read: (after, upTo) => following.read(after, upTo),
        objection: this.#objector(request),
      }
      await followEvents(reply.raw, subscription, over.signal, this.#options.pace)
    } finally {
      this.#leave(tenant.id, known)
    }
  }

  /** Something may have been written. */
  notify(tenantId: string): void {
    this.#followed.get(tenantId)?.feed.notify()
  }

  /** The tenant has changed or is gone. */
  evict(tenantId: string): void {
    this.#end(tenantId, changed)
  }

  /** Until the service stops. */
  async run(signal: AbortSignal): Promise<void> {
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    for (const tenantId of [...this.#followed.keys()]) this.#end(tenantId, stopping)
  }

  /** Of a row's entries. */
  #lastPosition(row: bigint): bigint {
    return row * this.#slots + this.#slots - 1n
  }

  #enter(tenant: Tenant): Followed {
    const { sequence, most: max, what } = this.#options
    const known = this.#followed.get(tenant.id) ?? {
      feed: new TenantFeed((mark) => readLog(tenant, mark, sequence)),
      subscribers: 0,
      over: new AbortController(),
    }
    if (known.subscribers >= max)
      throw new RuntimeError('TOO_MANY_SUBSCRIBERS', `${max} subscribers follow this tenant's ${what} already`)
    this.#followed.set(tenant.id, known)
    known.subscribers++
    return known
  }

  #leave(tenantId: string, known: Followed): void {
    known.subscribers--
    if (known.subscribers === 0 && this.#followed.get(tenantId) === known) this.#followed.delete(tenantId)
  }

  #end(tenantId: string, reason: End): void {
    this.#followed.get(tenantId)?.over.abort(new Ended(reason))
    this.#followed.delete(tenantId)
  }

  /** Looks whether the credentials still belong to whom they belonged to. */
  #objector({ tenant: { id }, rls, headers }: FastifyRequest): () => Promise<End | undefined> {
    const { authenticator, tenantOf } = this.#options
    const credentials = credentialsOf(headers)
    return async () => {
      // As it is now: keys may have been rotated. One that is gone is ended by whoever tells of it.
      const tenant = tenantOf(id)
      if (tenant === undefined) return undefined
      try {
        const context = await authenticator.authenticate(tenant, credentials)
        if (JSON.stringify(context) === JSON.stringify(rls)) return undefined
        return { code: 'INVALID_TOKEN', message: 'the credentials belong to somebody else now; connect again' }
      } catch (error) {
        if (!(error instanceof RuntimeError) || error.status >= 500) throw error
        return { code: 'INVALID_TOKEN', message: error.message }
      }
    }
  }
}
