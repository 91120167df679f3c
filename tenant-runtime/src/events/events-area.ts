// Subscriptions to the event log (specification, section 6) as an area of the runtime: server-sent events, each
// subscriber with their own place in the log and what their row-level security lets them see.
import type { FastifyRequest } from 'fastify'
import { RuntimeError } from '../errors.ts'
import { corsHeaders } from '../http/cors.ts'
import type { Area } from '../tenancy/area.ts'
import { credentialsOf, type Authenticator } from '../tenancy/authenticate.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { lookAtLog, readEvents } from './event-reader.ts'
import { Ended, followEvents, type End, type Pace, type Subscription } from './follow-events.ts'
import { readFilter, readLastEventId } from './read-subscription.ts'
import { TenantFeed } from './tenant-feed.ts'

export interface EventsAreaOptions {
  now: () => Date
  authenticator: Authenticator
  tenantOf: (tenantId: string) => Tenant | undefined
  /** Of one tenant at once, in this process. */
  mostSubscribers?: number
  pace?: Pace
}

export interface EventsArea extends Area {
  /** Something of the tenant's may have been written. */
  poke(tenantId: string): void
}

interface Followed {
  feed: TenantFeed
  subscribers: number
  over: AbortController
}

const changed: End = { code: 'TENANT_CHANGED', message: 'the tenant has changed; connect again with the last id' }
const stopping: End = { code: 'STOPPING', message: 'the service is stopping; connect again with the last id' }

export function createEventsArea({ now, authenticator, tenantOf, mostSubscribers = 500, pace }: EventsAreaOptions): EventsArea {
  const followed = new Map<string, Followed>()

  const enter = (tenant: Tenant): Followed => {
    const known = followed.get(tenant.id) ?? { feed: new TenantFeed((mark) => lookAtLog(tenant, mark)), subscribers: 0, over: new AbortController() }
    if (known.subscribers >= mostSubscribers) throw new RuntimeError('TOO_MANY_SUBSCRIBERS', `${mostSubscribers} subscribers follow this tenant's events already`)
    followed.set(tenant.id, known)
    known.subscribers++
    return known
  }
  const leave = (tenantId: string, known: Followed) => {
    known.subscribers--
    if (known.subscribers === 0 && followed.get(tenantId) === known) followed.delete(tenantId)
  }
  const end = (tenantId: string, reason: End) => {
    followed.get(tenantId)?.over.abort(new Ended(reason))
    followed.delete(tenantId)
  }

  return {
    name: 'events',
    async routes(app) {
      app.get('/events/v1', { config: { access: 'anyone' } }, async (request, reply) => {
        const { tenant, rls } = request
        const filter = readFilter(request.query)
        const last = readLastEventId(request.headers['last-event-id'])
        const known = enter(tenant)
        const { feed, over } = known
        try {
          const newest = await feed.look()
          if (last !== undefined && last > newest) throw new RuntimeError('INVALID_EVENT_ID', `the log ends before the event ${last}: it may have been restored; connect without Last-Event-ID`)
          void reply.hijack()
          const subscription: Subscription = {
            headers: corsHeaders(request),
            after: last,
            beyond: (after, signal) => feed.beyond(after, signal),
            read: (after, upTo) => readEvents(tenant, rls, filter, after, upTo),
            objection: objector(request, authenticator, tenantOf),
          }
          await followEvents(reply.raw, subscription, over.signal, pace)
        } finally {
          leave(tenant.id, known)
        }
      })
    },
    poke: (tenantId) => followed.get(tenantId)?.feed.poke(),
    start: async () => undefined,
    async run(signal) {
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
      for (const tenantId of [...followed.keys()]) end(tenantId, stopping)
    },
    close: async () => undefined,
    health: async () => ({ status: 'healthy', observed_at: now().toISOString() }),
    usage: async () => ({}),
    forget: (tenantId) => end(tenantId, changed),
    removeData: async (tenantId) => end(tenantId, changed),
  }
}

/** Looks whether the credentials still belong to whom they belonged to. */
function objector({ tenant: { id }, rls, headers }: FastifyRequest, authenticator: Authenticator, tenantOf: EventsAreaOptions['tenantOf']): () => Promise<End | undefined> {
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
