// The rollouts' store on the control database, for the API.
import { randomUUID } from 'node:crypto'
import { ControlError } from '../platform/errors.ts'
import { afterPosition, decodeCursor, toPage } from '../platform/cursor.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { lock } from '../platform/locks.ts'
import { toRollout } from './store-rows.ts'
import { isolationsWith, type NewRollout, type Rollout, type RolloutComponent } from './rollout.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import type { KeyLimit } from '../keys/index.ts'
import type { PageRequest, Page } from '../platform/page.ts'
import { isUuid, uuidPattern } from '../platform/uuid.ts'

interface RolloutStoreOptions {
  database: Database
  now: () => Date
}

export const openStates = ['running', 'rolling_back']

/** The rollouts, as operators request and read them. */
export type RolloutStore = ReturnType<typeof createRolloutStore>

/** Creates the API's part of the store of rollouts, on the control database. */
export function createRolloutStore({ database, now }: RolloutStoreOptions) {
  return {
    /**
     * Creates a rollout. @throws ControlError ROLLOUT_IN_PROGRESS, INVALID_FIELD for a canary without services in the
     * region
     */
    async create({ region, canary, ...rollout }: NewRollout, { transaction, audit }: RecordedWrite): Promise<Rollout> {
      await lock(transaction, `rollouts:${region}`)
      const open = await transaction.rollout.findFirst({
        where: { regionId: region, state: { in: openStates } },
        select: { id: true },
      })
      if (open !== null) {
        throw new ControlError('ROLLOUT_IN_PROGRESS', `The rollout ${open.id} is in progress in the region.`, {
          detail: { rollout_id: open.id },
        })
      }
      if (canary !== undefined) await checkCanary(transaction, canary, region, rollout.component)
      const row = await transaction.rollout.create({
        data: { ...rollout, id: randomUUID(), regionId: region, canary: canary ?? null, createdAt: now() },
      })
      const detail = {
        region,
        component: rollout.component,
        image: rollout.image,
        image_id: rollout.imageId,
        canary: canary ?? null,
      }
      audit({ action: 'rollout.create', target: row.id, detail })
      return toRollout(row)
    },

    /** Returns a rollout; undefined if it does not exist. */
    async get(id: string): Promise<Rollout | undefined> {
      const row = isUuid(id) ? await database.rollout.findUnique({ where: { id } }) : null
      return row === null ? undefined : toRollout(row)
    },

    /**
     * Lists rollouts, the oldest first.
     * @param keyLimit the region that the caller's key is limited to
     */
    async list(
      { region }: { region?: string },
      keyLimit: KeyLimit,
      { limit, cursor }: PageRequest,
    ): Promise<Page<Rollout>> {
      const rows = await database.rollout.findMany({
        where: {
          AND: keyLimit.region === undefined ? {} : { regionId: keyLimit.region },
          ...(region === undefined ? {} : { regionId: region }),
          ...(cursor === undefined ? {} : afterPosition(decodeCursor(cursor, uuidPattern))),
        },
        orderBy: [{ createdAt: 'asc' }, { id: 'asc' }],
        take: limit + 1,
      })
      return toPage(rows, limit, toRollout)
    },

    /**
     * Cancels a rollout. Each of its tenants gets its former image back. @throws ControlError ROLLOUT_NOT_FOUND,
     * ROLLOUT_FINISHED
     */
    async cancel(id: string, { transaction, audit }: RecordedWrite): Promise<Rollout> {
      const row = isUuid(id) ? await lockRollout(transaction, id) : null
      if (row === null) throw new ControlError('ROLLOUT_NOT_FOUND', 'There is no such rollout.')
      if (!openStates.includes(row.state))
        throw new ControlError('ROLLOUT_FINISHED', `The rollout has ended with the state "${row.state}".`)
      // An earlier reason for the return stays recorded.
      const data =
        row.state === 'running' ? { state: 'rolling_back', error: 'The operator cancelled the rollout.' } : {}
      const cancelled = await transaction.rollout.update({ where: { id }, data })
      audit({ action: 'rollout.cancel', target: id, detail: { wave: row.wave } })
      return toRollout(cancelled)
    },
  }
}

async function lockRollout(transaction: Transaction, id: string) {
  await lock(transaction, `rollout:${id}`)
  return transaction.rollout.findUnique({ where: { id } })
}

async function checkCanary(
  transaction: Transaction,
  id: string,
  regionId: string,
  component: RolloutComponent,
): Promise<void> {
  const where = {
    id,
    regionId,
    isolation: { in: [...isolationsWith[component]] },
    desired: { notIn: ['warm', 'deleted'] },
  }
  if ((await transaction.tenant.count({ where })) === 0) {
    throw new ControlError(
      'INVALID_FIELD',
      `Invalid field "canary": the region has no tenant ${id} with the component ${component}.`,
    )
  }
}
