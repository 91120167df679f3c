// Webhooks, their deliveries and their messages, as operators and receivers see them.
import { createHmac } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

export interface Received {
  path: string
  headers: IncomingHttpHeaders
  body: string
}

export interface Webhook {
  id: string
  secret: string
  enabled: boolean
  disabled_reason: string | null
}

export interface Delivery {
  id: string
  event_id: string
  type: string
  state: string
  attempts: number
  last_status: number | null
  last_error: string | null
}

export const signatureOf = (secret: string, { headers, body }: Received) =>
  `v1,${createHmac('sha256', Buffer.from(secret.slice('whsec_'.length), 'base64'))
    .update(`${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`)
    .digest('base64')}`
