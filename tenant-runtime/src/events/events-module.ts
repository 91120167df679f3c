// Subscriptions to the event log (specification, section 6) as a module of the runtime: server-sent events, with a position
// in the log for each subscriber and only the events that their row-level security allows.
import type { RuntimeModule } from '../tenancy/runtime-module.ts'
import type { Authenticator } from '../tenancy/authenticate.ts'
import { HourlyRetention } from '../tenancy/hourly-retention.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { RuntimeError } from '../errors.ts'
import { trimEvents } from './event-retention.ts'
import { deletedUpTo, readEvents } from './event-reader.ts'
import { StreamEndedError, type Pace } from './follow-events.ts'
import { Followers } from './followers.ts'
import { readFilter, readLastEventId } from './read-subscription.ts'

export interface EventsModuleOptions {
  now: () => Date
  /** Returns monotonic milliseconds. */
  elapsed: () => number
  authenticator: Authenticator
  tenantOf: (tenantId: string) => Tenant | undefined
  /** The maximum number of subscribers of one tenant in this process. */
  maxSubscribers?: number
  pace?: Pace
  onError: (error: Error) => void
}

export interface EventsModule extends RuntimeModule {
  /** Notifies the module that the tenant's log may have new entries. */
  notify(tenantId: string): void
  readonly retention: HourlyRetention
}

const eventsGone =
  'Events after the given Last-Event-ID were deleted. Read the current state again, and connect without Last-Event-ID.'

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
    maxFollowers: maxSubscribers,
    authenticator,
    tenantOf,
    pace,
  })
  const retention = new HourlyRetention({ what: 'Old events', trim: trimEvents, elapsed, onError })
  const evict = (tenantId: string) => {
    retention.evict(tenantId)
    followers.evict(tenantId)
  }
  return {
    name: 'events',
    retention,
    async routes(app) {
      app.get('/events/v1', { config: { access: 'public' } }, async (request, reply) => {
        const { tenant, rls } = request
        const filter = readFilter(request.query)
        const last = readLastEventId(request.headers['last-event-id'])
        if (last !== undefined && last < (await deletedUpTo(tenant))) throw new RuntimeError('EVENTS_GONE', eventsGone)
        await followers.serve(request, reply, {
          last,
          async read(after, upTo) {
            const page = await readEvents(tenant, rls, filter, after, upTo)
            if (after < (await deletedUpTo(tenant)))
              throw new StreamEndedError({ code: 'EVENTS_GONE', message: eventsGone })
            return page
          },
        })
      })
    },
    notify: (tenantId) => followers.notify(tenantId),
    start: async () => undefined,
    run: (signal) => followers.run(signal),
    close: () => retention.idle(),
    health: async () => ({ status: 'healthy', observed_at: now().toISOString() }),
    usage: async () => ({}),
    evict,
    removeData: async (tenantId) => evict(tenantId),
  }
}
