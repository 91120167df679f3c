// The followers of tenants' logs as server-sent events: their maximum number, one feed for all followers of a tenant, and
// their end when the tenant changes, the service stops or their credentials are no longer valid.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { RuntimeError } from '../errors.ts'
import { corsHeaders } from '../http/cors.ts'
import type { Authenticator } from '../tenancy/authenticate.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { readLog, type EventPage, type LogSequence } from './event-reader.ts'
import { StreamEndedError, followEvents, type End, type Pace, type Subscription } from './follow-events.ts'
import { TenantFeed } from './tenant-feed.ts'

interface FollowersOptions {
  /** The sequence that numbers the log's rows. */
  sequence: LogSequence
  /** The followed entries, for messages. */
  what: string
  /** The maximum number of followers of one tenant in this process. */
  maxFollowers: number
  authenticator: Authenticator
  tenantOf: (tenantId: string) => Tenant | undefined
  pace?: Pace | undefined
  /** The number of entries that a row may hold. The positions of its entries begin at the row's number times this. */
  positionsPerRow?: bigint
}

interface FollowRequest {
  /** The last entry that the follower has; undefined when they want only new entries. */
  last: bigint | undefined
  /** Reads entries after `after`, up to and including `upTo`. */
  read(after: bigint, upTo: bigint): Promise<EventPage>
}

interface FollowedTenant {
  feed: TenantFeed
  subscribers: number
  over: AbortController
}

const changed: End = { code: 'TENANT_CHANGED', message: 'The tenant has changed. Connect again with the last ID.' }
const stopping: End = { code: 'STOPPING', message: 'The service is stopping. Connect again with the last ID.' }

export class Followers {
  readonly #options: FollowersOptions
  readonly #positionsPerRow: bigint
  readonly #followed = new Map<string, FollowedTenant>()

  constructor(options: FollowersOptions) {
    this.#options = options
    this.#positionsPerRow = options.positionsPerRow ?? 1n
  }

  /**
   * Responds to the request until its end.
   * @throws RuntimeError INVALID_EVENT_ID, TOO_MANY_SUBSCRIBERS
   */
  async serve(request: FastifyRequest, reply: FastifyReply, { last, ...entries }: FollowRequest): Promise<void> {
    const { tenant } = request
    const known = this.#enter(tenant)
    const { feed, over } = known
    try {
      const newest = this.#lastPosition(await feed.poll())
      if (last !== undefined && last > newest)
        throw new RuntimeError(
          'INVALID_EVENT_ID',
          `The log ends before the event ${last}, perhaps after a restore. Connect without Last-Event-ID.`,
        )
      void reply.hijack()
      const subscription: Subscription = {
        headers: corsHeaders(request),
        after: last,
        // The row of the next position may be the one that the follower has read in part.
        beyond: async (after, signal) =>
          this.#lastPosition(await feed.beyond((after + 1n) / this.#positionsPerRow - 1n, signal)),
        read: (after, upTo) => entries.read(after, upTo),
        check: this.#createCheck(request),
      }
      await followEvents(reply.raw, subscription, over.signal, this.#options.pace)
    } finally {
      this.#leave(tenant.id, known)
    }
  }

  /** Notifies the followers that new entries may have been written. */
  notify(tenantId: string): void {
    this.#followed.get(tenantId)?.feed.notify()
  }

  /** Ends the tenant's streams, because it has changed or was deleted. */
  evict(tenantId: string): void {
    this.#end(tenantId, changed)
  }

  /** Waits until the service stops, and ends all streams. */
  async run(signal: AbortSignal): Promise<void> {
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    for (const tenantId of [...this.#followed.keys()]) this.#end(tenantId, stopping)
  }

  /** Returns the position of a row's last entry. */
  #lastPosition(row: bigint): bigint {
    return row * this.#positionsPerRow + this.#positionsPerRow - 1n
  }

  #enter(tenant: Tenant): FollowedTenant {
    const { sequence, maxFollowers, what } = this.#options
    const known = this.#followed.get(tenant.id) ?? {
      feed: new TenantFeed((mark) => readLog(tenant, mark, sequence)),
      subscribers: 0,
      over: new AbortController(),
    }
    if (known.subscribers >= maxFollowers)
      throw new RuntimeError(
        'TOO_MANY_SUBSCRIBERS',
        `The maximum of ${maxFollowers} subscribers to this tenant's ${what} is reached.`,
      )
    this.#followed.set(tenant.id, known)
    known.subscribers++
    return known
  }

  #leave(tenantId: string, known: FollowedTenant): void {
    known.subscribers--
    if (known.subscribers === 0 && this.#followed.get(tenantId) === known) this.#followed.delete(tenantId)
  }

  #end(tenantId: string, reason: End): void {
    this.#followed.get(tenantId)?.over.abort(new StreamEndedError(reason))
    this.#followed.delete(tenantId)
  }

  /** Returns a function that checks whether the credentials are still valid and still belong to the same user. */
  #createCheck(request: FastifyRequest): () => Promise<End | undefined> {
    const { authenticator, tenantOf } = this.#options
    const { id } = request.tenant
    return async () => {
      // The tenant as it is now, because its keys may have been rotated. The streams of a deleted tenant end by `evict`.
      const tenant = tenantOf(id)
      if (tenant === undefined) return undefined
      try {
        const context = await authenticator.authenticateAgain(request, tenant)
        if (JSON.stringify(context) === JSON.stringify(request.rls)) return undefined
        return { code: 'INVALID_TOKEN', message: 'The credentials now belong to another user. Connect again.' }
      } catch (error) {
        if (!(error instanceof RuntimeError) || error.status >= 500) throw error
        return { code: 'INVALID_TOKEN', message: error.message }
      }
    }
  }
}
