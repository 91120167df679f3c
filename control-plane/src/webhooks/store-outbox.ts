// The outbox of operators' webhooks in the control database, for the leader.
import type { Seal } from '../platform/seal.ts'
import type { DueDelivery, WebhookBacklog } from './webhook.ts'
import type { Database } from '../platform/database.ts'
import { secretsOf } from './store-rows.ts'
import type { AttemptResult, Verdict } from './delivery-plan.ts'

const eventBatchSize = 500
const deliveryBatchSize = 64
const retentionMilliseconds = 90 * 86_400_000

interface DueRow {
  id: string
  endpoint_id: string
  attempts: number
  url: string
  secret: Uint8Array
  former_secret: Uint8Array | null
  former_until: Date | null
  event_id: string
  type: string
  at: Date
  data: unknown
}

/** The leader's outbox. */
export type WebhookOutbox = ReturnType<typeof createWebhookOutbox>

/** Creates the outbox of operators' webhooks, on the control database. `seal` opens the endpoints' secrets. */
export function createWebhookOutbox(database: Database, seal: Seal, now: () => Date) {
  return {
    /**
     * Creates the deliveries of new events.
     * @returns the number of events
     */
    async dispatch(): Promise<number> {
      const [row] = await database.$queryRaw<{ events: number }[]>`
        with new_events as (
          update operator_events set handed_out = true
          where id in (select id from operator_events where not handed_out order by at, id limit ${eventBatchSize} for update skip locked)
          returning id, type
        ), deliveries as (
          insert into webhook_deliveries (id, event_id, endpoint_id, next_at, created_at)
          select gen_random_uuid(), new_events.id, e.id, ${now()}, ${now()} from new_events, webhook_endpoints e
          where e.disabled is null and (e.types = '[]' or jsonb_exists(e.types, new_events.type))
          on conflict do nothing
        )
        select count(*)::int as events from new_events`
      return row?.events ?? 0
    },

    /** Returns due deliveries, the longest due first, at most `maxPerEndpoint` for each endpoint. */
    async due(maxPerEndpoint: number): Promise<DueDelivery[]> {
      const rows = await database.$queryRaw<DueRow[]>`
        select d.id, d.endpoint_id, d.attempts, e.url, e.secret, e.former_secret, e.former_until, v.id as event_id, v.type, v.at, v.data
        from webhook_endpoints e, lateral (
          select * from webhook_deliveries
          where endpoint_id = e.id and state = 'pending' and next_at <= ${now()} order by next_at, id limit ${maxPerEndpoint}
        ) d join operator_events v on v.id = d.event_id
        where e.disabled is null
        order by d.next_at, d.id limit ${deliveryBatchSize}`
      return rows.map((row) => ({
        id: row.id,
        endpointId: row.endpoint_id,
        url: row.url,
        attempts: row.attempts,
        event: { id: row.event_id, type: row.type, at: row.at, data: row.data },
        secrets: secretsOf(
          { id: row.endpoint_id, secret: row.secret, formerSecret: row.former_secret, formerUntil: row.former_until },
          seal,
          now(),
        ),
      }))
    },

    /** Records an attempt of a delivery, and schedules the next one or disables the endpoint as the verdict requires. */
    async record(
      { id, endpointId, attempts }: DueDelivery,
      { status, error }: AttemptResult,
      verdict: Verdict,
    ): Promise<void> {
      const at = now()
      const nextAt = new Date(at.getTime() + (verdict.state === 'pending' ? verdict.afterMilliseconds : 0))
      // If the message was replayed meanwhile, it is sent again.
      const recorded = database.webhookDelivery.updateMany({
        where: { id, attempts, state: 'pending' },
        data: {
          state: verdict.state,
          attempts: attempts + 1,
          nextAt,
          lastAt: at,
          lastStatus: status ?? null,
          lastError: error ?? null,
        },
      })
      const isGone = verdict.state === 'dead' && verdict.isGone
      await database.$transaction([
        recorded,
        ...(isGone
          ? [
              database.webhookEndpoint.updateMany({
                where: { id: endpointId, disabled: null },
                data: { disabled: 'gone' },
              }),
            ]
          : []),
      ])
    },

    /** Returns the backlog of enabled endpoints. */
    async backlog(): Promise<WebhookBacklog> {
      const [row] = await database.$queryRaw<{ pending: number; dead: number; oldest: Date | null }[]>`
        select (count(*) filter (where state = 'pending'))::int as pending, (count(*) filter (where state = 'dead'))::int as dead,
          min(d.created_at) filter (where state = 'pending') as oldest
        from webhook_deliveries d join webhook_endpoints e on e.id = d.endpoint_id
        where d.state in ('pending', 'dead') and e.disabled is null`
      return { pending: row?.pending ?? 0, dead: row?.dead ?? 0, oldest: row?.oldest ?? undefined }
    },

    /** Deletes events that are past their retention time, with their deliveries. */
    async evictOld(): Promise<void> {
      await database.operatorEvent.deleteMany({
        where: { handedOut: true, at: { lt: new Date(now().getTime() - retentionMilliseconds) } },
      })
    },
  }
}
