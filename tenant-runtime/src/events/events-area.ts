// Subscriptions to the event log (specification, section 6) as an area of the runtime: server-sent events, each
// subscriber with their own place in the log and what their row-level security lets them see.
import type { Area } from '../tenancy/area.ts'
import type { Authenticator } from '../tenancy/authenticate.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { readEvents } from './event-reader.ts'
import type { Pace } from './follow-events.ts'
import { Followers } from './followers.ts'
import { readFilter, readLastEventId } from './read-subscription.ts'

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

export function createEventsArea({ now, authenticator, tenantOf, mostSubscribers = 500, pace }: EventsAreaOptions): EventsArea {
  const followers = new Followers({ sequence: 'event_log_seq_seq', what: 'events', most: mostSubscribers, authenticator, tenantOf, pace })
  return {
    name: 'events',
    async routes(app) {
      app.get('/events/v1', { config: { access: 'anyone' } }, async (request, reply) => {
        const { tenant, rls } = request
        const filter = readFilter(request.query)
        const last = readLastEventId(request.headers['last-event-id'])
        await followers.serve(request, reply, { last, read: (after, upTo) => readEvents(tenant, rls, filter, after, upTo) })
      })
    },
    poke: (tenantId) => followers.poke(tenantId),
    start: async () => undefined,
    run: (signal) => followers.run(signal),
    close: async () => undefined,
    health: async () => ({ status: 'healthy', observed_at: now().toISOString() }),
    usage: async () => ({}),
    forget: (tenantId) => followers.forget(tenantId),
    removeData: async (tenantId) => followers.forget(tenantId),
  }
}
