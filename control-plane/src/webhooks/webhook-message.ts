// Writes an event as the message that an endpoint receives: body, headers and signature, as in Standard Webhooks. Pure.
import { createHmac } from 'node:crypto'

export interface SentEvent {
  id: string
  type: string
  at: Date
  data: unknown
}

/** The prefix of a secret's text. The key follows in base64. */
export const webhookSecretPrefix = 'whsec_'

/** Returns the body, which is the same at each attempt. */
export function messageBody({ type, at, data }: SentEvent): string {
  return JSON.stringify({ type, timestamp: at.toISOString(), data })
}

/**
 * Returns the headers of an attempt.
 * @param secrets the secrets that sign: a receiver may know the former or the new one
 * @param now the time of this attempt; receivers reject messages of another time
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
