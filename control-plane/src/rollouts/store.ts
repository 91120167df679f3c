// The rollouts' store on the control database, as the API uses it.
import { randomUUID } from 'node:crypto'
import { ControlError } from '../platform/errors.ts'
import type { Rollout } from './rollout.ts'
import type { RolloutStore } from './rollout-store.ts'
import type { Seal } from '../platform/seal.ts'
import type { WriteContext } from '../platform/write-context.ts'
import { afterPosition, decodeCursor, toPage } from '../platform/cursor.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { recordedWrite, type Recorded } from '../platform/recorded-write.ts'
import { toRollout } from './store-rows.ts'

interface RolloutStoreOptions {
  database: Database
  seal: Seal
  now: () => Date
}

const rolloutIds = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/
export const openStates = ['running', 'rolling_back']

export function createRolloutStore({ database, seal, now }: RolloutStoreOptions): RolloutStore {
  const write = (context: WriteContext, work: (transaction: Transaction) => Promise<Recorded<Rollout>>) =>
    recordedWrite(database, seal, now, context, work)

  return {
    create: ({ region, canary, ...rollout }, context, answer) =>
      write(context, async (transaction) => {
        const open = await transaction.rollout.findFirst({
          where: { regionId: region, state: { in: openStates } },
          select: { id: true },
        })
        if (open !== null) {
          throw new ControlError('ROLLOUT_UNDER_WAY', `the rollout ${open.id} is under way in the region`, {
            detail: { rollout_id: open.id },
          })
        }
        if (canary !== undefined) await checkCanary(transaction, canary, region)
        const row = await transaction.rollout.create({
          data: { ...rollout, id: randomUUID(), regionId: region, canary: canary ?? null, createdAt: now() },
        })
        const result = toRollout(row)
        const detail = {
          region,
          component: rollout.component,
          image: rollout.image,
          image_id: rollout.imageId,
          canary: canary ?? null,
        }
        return { result, audit: { action: 'rollout.create', target: result.id, detail }, answer: answer(result) }
      }),

    async get(id) {
      const row = rolloutIds.test(id) ? await database.rollout.findUnique({ where: { id } }) : null
      return row === null ? undefined : toRollout(row)
    },

    async list({ region }, { limit, cursor }) {
      const rows = await database.rollout.findMany({
        where: {
          ...(region === undefined ? {} : { regionId: region }),
          ...(cursor === undefined ? {} : afterPosition(decodeCursor(cursor, rolloutIds))),
        },
        orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
        take: limit + 1,
      })
      return toPage(rows, limit, toRollout)
    },

    cancel: (id, context) =>
      write(context, async (transaction) => {
        const row = rolloutIds.test(id) ? await transaction.rollout.findUnique({ where: { id } }) : null
        if (row === null) throw new ControlError('ROLLOUT_NOT_FOUND', 'there is no such rollout')
        if (!openStates.includes(row.state))
          throw new ControlError('ROLLOUT_FINISHED', `the rollout has ended: ${row.state}`)
        // What made it turn back before stays said.
        const data = row.state === 'running' ? { state: 'rolling_back', error: 'cancelled by the operator' } : {}
        const cancelled = await transaction.rollout.update({ where: { id }, data })
        return {
          result: toRollout(cancelled),
          audit: { action: 'rollout.cancel', target: id, detail: { wave: row.wave } },
        }
      }),
  }
}

async function checkCanary(transaction: Transaction, id: string, regionId: string): Promise<void> {
  const where = { id, regionId, isolation: { not: 'schema-per-tenant' }, desired: { notIn: ['warm', 'deleted'] } }
  if ((await transaction.tenant.count({ where })) === 0) {
    throw new ControlError('INVALID_FIELD', `field "canary": the region has no tenant ${id} with services of its own`)
  }
}
