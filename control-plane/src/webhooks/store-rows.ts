// Converts rows of webhooks into values.
import { Type } from 'typebox'
import { Value } from 'typebox/value'
import type { Seal } from '../platform/seal.ts'
import type { DeliveryState, WebhookDelivery, WebhookEndpoint } from './webhook.ts'
import type { Prisma } from '../platform/database.ts'

const Types = Type.Array(Type.String())

export function secretContext(endpointId: string): string {
  return `webhook:${endpointId}`
}

export function toEndpoint(row: Prisma.WebhookEndpointGetPayload<object>): WebhookEndpoint {
  return {
    id: row.id,
    url: row.url,
    description: row.description,
    types: Value.Parse(Types, row.types),
    // Check constraints limit these to their values.
    disabled: (row.disabled as WebhookEndpoint['disabled'] | null) ?? undefined,
    createdAt: row.createdAt,
  }
}

export const withEvent = { event: true } as const

export function toDelivery(row: Prisma.WebhookDeliveryGetPayload<{ include: typeof withEvent }>): WebhookDelivery {
  return {
    id: row.id,
    event: row.event,
    state: row.state as DeliveryState,
    attempts: row.attempts,
    nextAt: row.state === 'pending' ? row.nextAt : undefined,
    last:
      row.lastAt === null
        ? undefined
        : { at: row.lastAt, status: row.lastStatus ?? undefined, error: row.lastError ?? undefined },
    createdAt: row.createdAt,
  }
}

/** Returns an endpoint's secrets, newest first. The former one is included while it signs. */
export function secretsOf(
  row: { id: string; secret: Uint8Array; formerSecret: Uint8Array | null; formerUntil: Date | null },
  seal: Seal,
  now: Date,
): string[] {
  const former =
    row.formerSecret !== null && row.formerUntil !== null && row.formerUntil > now ? [row.formerSecret] : []
  return [row.secret, ...former].map((secret) => seal.open(secret, secretContext(row.id)))
}
