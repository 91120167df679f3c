// The API's store of operators' webhooks in the control database.
import { randomUUID } from 'node:crypto'
import { ControlError } from '../platform/errors.ts'
import type { Seal } from '../platform/seal.ts'
import type { WebhookEndpoint, DeliveryState, WebhookDelivery } from './webhook.ts'
import { afterPosition, decodeCursor, toPage } from '../platform/cursor.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { lock } from '../platform/locks.ts'
import { secretContext, toDelivery, toEndpoint, withEvent } from './store-rows.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { PageRequest, Page } from '../platform/page.ts'
import { isUuid, uuidPattern } from '../platform/uuid.ts'

interface EndpointChange {
  url?: string
  description?: string
  types?: string[]
  enabled?: boolean
}

interface WebhookStoreOptions {
  database: Database
  seal: Seal
  now: () => Date
}

/** The API's store of webhooks. Every write is audited. */
export type WebhookStore = ReturnType<typeof createWebhookStore>

/** Creates the API's store of operators' webhooks, on the control database. */
export function createWebhookStore({ database, seal, now }: WebhookStoreOptions) {
  const found = async (from: Pick<Transaction, 'webhookEndpoint'>, id: string) => {
    const row = isUuid(id) ? await from.webhookEndpoint.findUnique({ where: { id } }) : null
    if (row === null) throw new ControlError('WEBHOOK_NOT_FOUND', 'There is no such webhook.')
    return row
  }

  /** Locks a webhook until the end of the transaction. */
  const locked = async (transaction: Transaction, id: string) => {
    if (isUuid(id)) await lock(transaction, `webhook:${id}`)
    return found(transaction, id)
  }

  return {
    /** Creates a webhook. */
    async create(
      { secret, ...endpoint }: { url: string; description: string; types: string[]; secret: string },
      { transaction, audit }: RecordedWrite,
    ): Promise<WebhookEndpoint> {
      const id = randomUUID()
      const row = await transaction.webhookEndpoint.create({
        data: { ...endpoint, id, secret: seal.seal(secret, secretContext(id)), createdAt: now() },
      })
      const made = toEndpoint(row)
      audit({ action: 'webhook.create', target: id, detail: { url: made.url, types: made.types } })
      return made
    },

    /** Lists webhooks, oldest first. */
    async list(): Promise<WebhookEndpoint[]> {
      return (await database.webhookEndpoint.findMany({ orderBy: [{ createdAt: 'asc' }, { id: 'asc' }] })).map(
        toEndpoint,
      )
    },

    /**
     * Returns a webhook.
     * @throws ControlError WEBHOOK_NOT_FOUND, as all methods below
     */
    get: async (id: string): Promise<WebhookEndpoint> => toEndpoint(await found(database, id)),

    /** Changes the given fields of a webhook. */
    async change(
      id: string,
      { enabled, ...change }: EndpointChange,
      { transaction, audit }: RecordedWrite,
    ): Promise<WebhookEndpoint> {
      await locked(transaction, id)
      const disabled = enabled === undefined ? {} : { disabled: enabled ? null : 'operator' }
      const row = await transaction.webhookEndpoint.update({ where: { id }, data: { ...change, ...disabled } })
      const detail = { ...change, ...(enabled === undefined ? {} : { enabled }) }
      audit({ action: 'webhook.change', target: id, detail })
      return toEndpoint(row)
    },

    /** Removes a webhook with its pending messages. */
    async remove(id: string, { transaction, audit }: RecordedWrite): Promise<void> {
      const { url } = await locked(transaction, id)
      await transaction.webhookEndpoint.delete({ where: { id } })
      audit({ action: 'webhook.delete', target: id, detail: { url } })
    },

    /** Replaces the secret. Messages are signed with the former secret too, until `formerUntil`. */
    async rotate(
      id: string,
      secret: string,
      formerUntil: Date,
      { transaction, audit }: RecordedWrite,
    ): Promise<WebhookEndpoint> {
      const { secret: formerSecret } = await locked(transaction, id)
      const row = await transaction.webhookEndpoint.update({
        where: { id },
        data: { secret: seal.seal(secret, secretContext(id)), formerSecret, formerUntil },
      })
      audit({ action: 'webhook.rotate', target: id, detail: { former_until: formerUntil.toISOString() } })
      return toEndpoint(row)
    },

    /** Lists deliveries of a webhook, the oldest first; only those of `state` when it is given. */
    async deliveries(
      id: string,
      state: DeliveryState | undefined,
      { limit, cursor }: PageRequest,
    ): Promise<Page<WebhookDelivery>> {
      await found(database, id)
      const rows = await database.webhookDelivery.findMany({
        where: {
          endpointId: id,
          ...(state === undefined ? {} : { state }),
          ...(cursor === undefined ? {} : afterPosition(decodeCursor(cursor, uuidPattern))),
        },
        include: withEvent,
        orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
        take: limit + 1,
      })
      return toPage(rows, limit, toDelivery)
    },

    /**
     * Sends a message again, beginning with the first attempt.
     * @throws ControlError DELIVERY_NOT_FOUND
     */
    async replay(id: string, deliveryId: string, { transaction, audit }: RecordedWrite): Promise<WebhookDelivery> {
      await locked(transaction, id)
      const { count } = isUuid(deliveryId)
        ? await transaction.webhookDelivery.updateMany({
            where: { id: deliveryId, endpointId: id },
            data: { state: 'pending', attempts: 0, nextAt: now() },
          })
        : { count: 0 }
      const row =
        count === 0
          ? null
          : await transaction.webhookDelivery.findUnique({ where: { id: deliveryId }, include: withEvent })
      if (row === null) throw new ControlError('DELIVERY_NOT_FOUND', 'The webhook has no such delivery.')
      audit({ action: 'webhook.replay', target: id, detail: { delivery: deliveryId } })
      return toDelivery(row)
    },

    /**
     * Sends all messages that were given up again.
     * @returns their number
     */
    async replayDead(id: string, { transaction, audit }: RecordedWrite): Promise<number> {
      await locked(transaction, id)
      const { count } = await transaction.webhookDelivery.updateMany({
        where: { endpointId: id, state: 'dead' },
        data: { state: 'pending', attempts: 0, nextAt: now() },
      })
      audit({ action: 'webhook.replay', target: id, detail: { deliveries: count } })
      return count
    },
  }
}
