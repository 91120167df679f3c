// Operators' webhooks on the control database, as the API uses them.
import { randomUUID } from 'node:crypto'
import { ControlError } from '../platform/errors.ts'
import type { Seal } from '../platform/seal.ts'
import type { WebhookStore } from './webhook-store.ts'
import { afterPosition, decodeCursor, toPage } from '../platform/cursor.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { recordedWrite } from '../platform/recorded-write.ts'
import { secretContext, toDelivery, toEndpoint, withEvent } from './store-rows.ts'

interface WebhookStoreOptions {
  database: Database
  seal: Seal
  now: () => Date
}

const uuids = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export function createWebhookStore({ database, seal, now }: WebhookStoreOptions): WebhookStore {
  const found = async (from: Pick<Transaction, 'webhookEndpoint'>, id: string) => {
    const row = uuids.test(id) ? await from.webhookEndpoint.findUnique({ where: { id } }) : null
    if (row === null) throw new ControlError('WEBHOOK_NOT_FOUND', 'there is no such webhook')
    return row
  }

  return {
    create: ({ secret, ...endpoint }, context, answer) =>
      recordedWrite(database, seal, now, context, async (transaction) => {
        const id = randomUUID()
        const row = await transaction.webhookEndpoint.create({
          data: { ...endpoint, id, secret: seal.seal(secret, secretContext(id)), createdAt: now() },
        })
        const result = toEndpoint(row)
        return {
          result,
          audit: { action: 'webhook.create', target: id, detail: { url: result.url, types: result.types } },
          answer: answer(result),
        }
      }),

    async list() {
      return (await database.webhookEndpoint.findMany({ orderBy: [{ createdAt: 'asc' }, { id: 'asc' }] })).map(
        toEndpoint,
      )
    },

    get: async (id) => toEndpoint(await found(database, id)),

    change: (id, { enabled, ...change }, context) =>
      recordedWrite(database, seal, now, context, async (transaction) => {
        await found(transaction, id)
        const disabled = enabled === undefined ? {} : { disabled: enabled ? null : 'operator' }
        const row = await transaction.webhookEndpoint.update({ where: { id }, data: { ...change, ...disabled } })
        const detail = { ...change, ...(enabled === undefined ? {} : { enabled }) }
        return { result: toEndpoint(row), audit: { action: 'webhook.change', target: id, detail } }
      }),

    remove: (id, context) =>
      recordedWrite(database, seal, now, context, async (transaction) => {
        const { url } = await found(transaction, id)
        await transaction.webhookEndpoint.delete({ where: { id } })
        return { result: undefined, audit: { action: 'webhook.delete', target: id, detail: { url } } }
      }),

    rotate: (id, secret, formerUntil, context, answer) =>
      recordedWrite(database, seal, now, context, async (transaction) => {
        const { secret: formerSecret } = await found(transaction, id)
        const row = await transaction.webhookEndpoint.update({
          where: { id },
          data: { secret: seal.seal(secret, secretContext(id)), formerSecret, formerUntil },
        })
        const result = toEndpoint(row)
        return {
          result,
          audit: { action: 'webhook.rotate', target: id, detail: { former_until: formerUntil.toISOString() } },
          answer: answer(result),
        }
      }),

    async deliveries(id, state, { limit, cursor }) {
      await found(database, id)
      const rows = await database.webhookDelivery.findMany({
        where: {
          endpointId: id,
          ...(state === undefined ? {} : { state }),
          ...(cursor === undefined ? {} : afterPosition(decodeCursor(cursor, uuids))),
        },
        include: withEvent,
        orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
        take: limit + 1,
      })
      return toPage(rows, limit, toDelivery)
    },

    replay: (id, deliveryId, context) =>
      recordedWrite(database, seal, now, context, async (transaction) => {
        await found(transaction, id)
        const where = { id: deliveryId, endpointId: id }
        const { count } = uuids.test(deliveryId)
          ? await transaction.webhookDelivery.updateMany({
              where,
              data: { state: 'pending', attempts: 0, nextAt: now() },
            })
          : { count: 0 }
        const row =
          count === 0
            ? null
            : await transaction.webhookDelivery.findUnique({ where: { id: deliveryId }, include: withEvent })
        if (row === null) throw new ControlError('DELIVERY_NOT_FOUND', 'the webhook has no such delivery')
        return {
          result: toDelivery(row),
          audit: { action: 'webhook.replay', target: id, detail: { delivery: deliveryId } },
        }
      }),

    replayDead: (id, context) =>
      recordedWrite(database, seal, now, context, async (transaction) => {
        await found(transaction, id)
        const { count } = await transaction.webhookDelivery.updateMany({
          where: { endpointId: id, state: 'dead' },
          data: { state: 'pending', attempts: 0, nextAt: now() },
        })
        return { result: count, audit: { action: 'webhook.replay', target: id, detail: { deliveries: count } } }
      }),
  }
}
