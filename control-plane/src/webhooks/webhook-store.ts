// Operators' webhooks: endpoints, and what is on its way to them.
import type { Page, PageRequest } from '../platform/page.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { AttemptResult, Verdict } from './delivery-plan.ts'
import type { SentEvent } from './webhook-message.ts'

export interface WebhookEndpoint {
  id: string
  url: string
  description: string
  /** None: all. */
  types: string[]
  /** Why nothing is sent to it; undefined: it is sent to. */
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
  /** Of one that is pending. */
  nextAt: Date | undefined
  last: { at: Date; status: number | undefined; error: string | undefined } | undefined
  createdAt: Date
}

/** As the API uses it. Every write is audited. */
export interface WebhookStore {
  create(
    endpoint: { url: string; description: string; types: string[]; secret: string },
    write: RecordedWrite,
  ): Promise<WebhookEndpoint>
  /** Oldest first. */
  list(): Promise<WebhookEndpoint[]>
  /** @throws ControlError WEBHOOK_NOT_FOUND, as all below */
  get(id: string): Promise<WebhookEndpoint>
  change(id: string, change: EndpointChange, write: RecordedWrite): Promise<WebhookEndpoint>
  /** With what is on its way to it. */
  remove(id: string, write: RecordedWrite): Promise<void>
  /** Messages are signed with the former secret too, until `formerUntil`. */
  rotate(id: string, secret: string, formerUntil: Date, write: RecordedWrite): Promise<WebhookEndpoint>
  deliveries(id: string, state: DeliveryState | undefined, page: PageRequest): Promise<Page<WebhookDelivery>>
  /** It is sent once more, from the first attempt on. @throws ControlError DELIVERY_NOT_FOUND */
  replay(id: string, deliveryId: string, write: RecordedWrite): Promise<WebhookDelivery>
  /** All that were given up. @returns how many */
  replayDead(id: string, write: RecordedWrite): Promise<number>
}

export interface DueDelivery {
  id: string
  endpointId: string
  url: string
  /** Newest first. */
  secrets: string[]
  event: SentEvent
  /** So far. */
  attempts: number
}

/** Of endpoints that are enabled. */
export interface WebhookBacklog {
  pending: number
  dead: number
  /** When the oldest that is pending was made. */
  oldest: Date | undefined
}

/** As the leader uses it. */
export interface WebhookOutbox {
  /** Makes the deliveries of new events. @returns how many events there were */
  dispatch(): Promise<number>
  /** Of each endpoint at most `each`, the longest due first. */
  due(each: number): Promise<DueDelivery[]>
  record(delivery: DueDelivery, result: AttemptResult, verdict: Verdict): Promise<void>
  backlog(): Promise<WebhookBacklog>
  /** Events that are older than they are kept, with their deliveries. */
  evictOld(): Promise<void>
}
