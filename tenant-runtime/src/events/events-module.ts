// Subscriptions to the event log (specification, section 6) as an area of the runtime: server-sent events, each
// subscriber with their own place in the log and what their row-level security lets them see.
import type { RuntimeModule } from '../tenancy/runtime-module.ts'
import type { Authenticator } from '../tenancy/authenticate.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { RuntimeError } from '../errors.ts'
import { EventRetention } from './event-retention.ts'
import { goneUpTo, readEvents } from './event-reader.ts'
import { Ended, type Pace } from './follow-events.ts'
import { Followers } from './followers.ts'
import { readFilter, readLastEventId } from './read-subscription.ts'

export interface EventsModuleOptions {
  now: () => Date
  /** Milliseconds, monotonic. */
  elapsed: () => number
  authenticator: Authenticator
  tenantOf: (tenantId: string) => Tenant | undefined
  /** Of one tenant at once, in this process. */
  maxSubscribers?: number
  pace?: Pace
  onError: (error: Error) => void
}

export interface EventsModule extends RuntimeModule {
  /** Something of the tenant's may have been written. */
  notify(tenantId: string): void
  readonly controller: EventRetention
}

const gone =
  'events behind the last one that you have are no longer kept: read anew what you follow, and connect without Last-Event-ID'

export function createEventsModule({
  now,
  elapsed,
  authenticator,
  tenantOf,
  maxSubscribers = 500,
  pace,
  onError,
}: EventsModuleOptions): EventsModule {
  const followers = new Followers({
    sequence: 'event_log_seq_seq',
    what: 'events',
    most: maxSubscribers,
    authenticator,
    tenantOf,
    pace,
  })
  const controller = new EventRetention(elapsed, onError)
  const evict = (tenantId: string) => {
    controller.evict(tenantId)
    followers.evict(tenantId)
  }
  return {
    name: 'events',
    controller,
    async routes(app) {
      app.get('/events/v1', { config: { access: 'anyone' } }, async (request, reply) => {
        const { tenant, rls } = request
        const filter = readFilter(request.query)
        const last = readLastEventId(request.headers['last-event-id'])
        if (last !== undefined && last < (await goneUpTo(tenant))) throw new RuntimeError('EVENTS_GONE', gone)
        await followers.serve(request, reply, {
          last,
          async read(after, upTo) {
            const page = await readEvents(tenant, rls, filter, after, upTo)
            if (after < (await goneUpTo(tenant))) throw new Ended({ code: 'EVENTS_GONE', message: gone })
            return page
          },
        })
      })
    },
    notify: (tenantId) => followers.notify(tenantId),
    start: async () => undefined,
    run: (signal) => followers.run(signal),
    close: () => controller.idle(),
    health: async () => ({ status: 'healthy', observed_at: now().toISOString() }),
    usage: async () => ({}),
    evict,
    removeData: async (tenantId) => evict(tenantId),
  }
}
