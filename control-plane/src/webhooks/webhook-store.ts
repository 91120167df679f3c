// Operators' webhooks: endpoints, deliveries, and the leader's outbox.
import type { Page, PageRequest } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { AttemptResult, Verdict } from './delivery-plan.ts'
import type { SentEvent } from './webhook-message.ts'

export interface WebhookEndpoint {
  id: string
  url: string
  description: string
  /** The types of events that it receives; all when empty. */
  types: string[]
  /** The reason why nothing is sent to it; undefined when it is enabled. */
  disabled: 'operator' | 'gone' | undefined
  createdAt: Date
}

interface EndpointChange {
  url?: string
  description?: string
  types?: string[]
  enabled?: boolean
}

export const deliveryStates = ['pending', 'delivered', 'dead'] as const
export type DeliveryState = (typeof deliveryStates)[number]

export interface WebhookDelivery {
  id: string
  event: SentEvent
  state: DeliveryState
  attempts: number
  /** The time of the next attempt, when the delivery is pending. */
  nextAt: Date | undefined
  last: { at: Date; status: number | undefined; error: string | undefined } | undefined
  createdAt: Date
}

/** The API's store of webhooks. Every write is audited. */
export interface WebhookStore {
  create(
    endpoint: { url: string; description: string; types: string[]; secret: string },
    write: RecordedWrite,
  ): Promise<WebhookEndpoint>
  /** Lists webhooks, oldest first. */
  list(): Promise<WebhookEndpoint[]>
  /**
   * Returns a webhook.
   * @throws ControlError WEBHOOK_NOT_FOUND, as all methods below
   */
  get(id: string): Promise<WebhookEndpoint>
  change(id: string, change: EndpointChange, write: RecordedWrite): Promise<WebhookEndpoint>
  /** Removes a webhook with its pending messages. */
  remove(id: string, write: RecordedWrite): Promise<void>
  /** Replaces the secret. Messages are signed with the former secret too, until `formerUntil`. */
  rotate(id: string, secret: string, formerUntil: Date, write: RecordedWrite): Promise<WebhookEndpoint>
  deliveries(id: string, state: DeliveryState | undefined, page: PageRequest): Promise<Page<WebhookDelivery>>
  /**
   * Sends a message again, beginning with the first attempt.
   * @throws ControlError DELIVERY_NOT_FOUND
   */
  replay(id: string, deliveryId: string, write: RecordedWrite): Promise<WebhookDelivery>
  /**
   * Sends all messages that were given up again.
   * @returns their number
   */
  replayDead(id: string, write: RecordedWrite): Promise<number>
}

export interface DueDelivery {
  id: string
  endpointId: string
  url: string
  /** The secrets that sign, newest first. */
  secrets: string[]
  event: SentEvent
  /** The number of attempts so far. */
  attempts: number
}

/** The backlog of enabled endpoints. */
export interface WebhookBacklog {
  pending: number
  dead: number
  /** The creation time of the oldest pending delivery. */
  oldest: Date | undefined
}

/** The leader's outbox. */
export interface WebhookOutbox {
  /**
   * Creates the deliveries of new events.
   * @returns the number of events
   */
  dispatch(): Promise<number>
  /** Returns due deliveries, the longest due first, at most `maxPerEndpoint` for each endpoint. */
  due(maxPerEndpoint: number): Promise<DueDelivery[]>
  record(delivery: DueDelivery, result: AttemptResult, verdict: Verdict): Promise<void>
  backlog(): Promise<WebhookBacklog>
  /** Deletes events that are past their retention time, with their deliveries. */
  evictOld(): Promise<void>
}
