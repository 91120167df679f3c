// Subscriptions to the event log (specification, section 6) as an area of the runtime: server-sent events, each
// subscriber with their own place in the log and what their row-level security lets them see.
import type { Area } from '../tenancy/area.ts'
import type { Authenticator } from '../tenancy/authenticate.ts'
import type { Tenant } from '../tenancy/tenant.ts'
import { RuntimeError } from '../errors.ts'
import { EventKeeper } from './event-keeper.ts'
import { goneUpTo, readEvents } from './event-reader.ts'
import { Ended, type Pace } from './follow-events.ts'
import { Followers } from './followers.ts'
import { readFilter, readLastEventId } from './read-subscription.ts'

export interface EventsAreaOptions {
  now: () => Date
  /** Milliseconds, monotonic. */
  elapsed: () => number
  authenticator: Authenticator
  tenantOf: (tenantId: string) => Tenant | undefined
  /** Of one tenant at once, in this process. */
  mostSubscribers?: number
  pace?: Pace
  onProblem: (problem: Error) => void
}

export interface EventsArea extends Area {
  /** Something of the tenant's may have been written. */
  poke(tenantId: string): void
  readonly keeper: EventKeeper
}

const gone =
  'events behind the last one that you have are no longer kept: read anew what you follow, and connect without Last-Event-ID'

export function createEventsArea({
  now,
  elapsed,
  authenticator,
  tenantOf,
  mostSubscribers = 500,
  pace,
  onProblem,
}: EventsAreaOptions): EventsArea {
  const followers = new Followers({
    sequence: 'event_log_seq_seq',
    what: 'events',
    most: mostSubscribers,
    authenticator,
    tenantOf,
    pace,
  })
  const keeper = new EventKeeper(elapsed, onProblem)
  const forget = (tenantId: string) => {
    keeper.forget(tenantId)
    followers.forget(tenantId)
  }
  return {
    name: 'events',
    keeper,
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
    poke: (tenantId) => followers.poke(tenantId),
    start: async () => undefined,
    run: (signal) => followers.run(signal),
    close: () => keeper.idle(),
    health: async () => ({ status: 'healthy', observed_at: now().toISOString() }),
    usage: async () => ({}),
    forget,
    removeData: async (tenantId) => forget(tenantId),
  }
}
