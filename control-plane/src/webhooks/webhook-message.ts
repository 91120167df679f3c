// An event as the message that an endpoint gets: body, headers and signature, in the form of Standard Webhooks. Pure.
import { createHmac } from 'node:crypto'

export interface SentEvent {
  id: string
  type: string
  at: Date
  data: unknown
}

/** Of a secret's text: the key is in base64 behind it. */
export const webhookSecretPrefix = 'whsec_'

/** The same bytes at each attempt. */
export function messageBody({ type, at, data }: SentEvent): string {
  return JSON.stringify({ type, timestamp: at.toISOString(), data })
}

/**
 * @param secrets each signs: a receiver may know the former or the new one
 * @param now of this attempt: receivers refuse messages of another time
 */
export function messageHeaders(
  id: string,
  body: string,
  secrets: readonly string[],
  now: Date,
): Record<string, string> {
  const timestamp = String(Math.floor(now.getTime() / 1000))
  const signed = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(webhookSecretPrefix.length), 'base64')
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
  })
  return {
    'content-type': 'application/json',
    'user-agent': 'tenantry-webhooks',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signed.join(' '),
  }
}
