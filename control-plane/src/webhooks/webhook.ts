// Operators' webhooks: endpoints, deliveries, and their backlog.
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
