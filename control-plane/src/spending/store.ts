// The store of spending limits in the control database.
import type { SpendingLimit as LimitRow } from '../../../prisma/client/client.ts'
import { recordChange } from '../platform/change-log.ts'
import type { Database, Transaction } from '../platform/database.ts'
import { ControlError, tenantNotFound } from '../platform/errors.ts'
import { leaderRow, ledRow } from '../platform/leader-fence.ts'
import { ledWrite } from '../platform/led-write.ts'
import { lock } from '../platform/locks.ts'
import type { RecordedWrite } from '../platform/recorded-write.ts'
import { toConditions, type Condition } from '../tenants/index.ts'
import { emitOperatorEvent } from '../webhooks/index.ts'
import { amountText, type SpendingCheck, type SpendingLimit } from './spending-limit.ts'

/** A stored limit with its last check. */
export interface StoredLimit extends SpendingLimit {
  changedAt: Date
  /** The last check; undefined before the first. */
  last: Pick<SpendingCheck, 'month' | 'totalMicro' | 'checkedAt' | 'rejectsUntil'> | undefined
  /** The tenant's condition `Spending`. */
  condition: Condition | undefined
}

/** A check of the limit as it was when it was read. */
export interface LimitCheck {
  limit: Pick<StoredLimit, 'tenantId' | 'changedAt'>
  check: SpendingCheck
}

/** The store of spending limits. */
export type SpendingStore = ReturnType<typeof createSpendingStore>

/** Creates the store of spending limits, on the control database. */
export function createSpendingStore({ database, now }: { database: Database; now: () => Date }) {
  const apply = async (transaction: Transaction, tenantId: string, check: SpendingCheck): Promise<void> => {
    const { month, totalMicro, checkedAt, rejectsUntil, condition, events } = check
    const row = await transaction.spendingLimit.findUnique({ where: { tenantId }, select: { rejectsUntil: true } })
    const columns = { month, totalMicro, checkedAt, rejectsUntil: rejectsUntil ?? null }
    await transaction.spendingLimit.update({ where: { tenantId }, data: columns })
    await reportCondition(transaction, tenantId, condition)
    for (const { event, once } of events) await emitOperatorEvent(transaction, event, now(), once)
    if (row?.rejectsUntil?.getTime() !== rejectsUntil?.getTime()) await recordChange(transaction, 'published', tenantId)
  }

  return {
    /** Returns a tenant's limit; undefined if it has none. */
    async get(tenantId: string): Promise<StoredLimit | undefined> {
      const row = await database.spendingLimit.findUnique({ where: { tenantId }, include: withConditions })
      return row === null ? undefined : toStoredLimit(row)
    },

    /** Returns at most `limit` limits of tenants that are not deleted, by the tenants' IDs above `after`. */
    async page(after: string, limit: number): Promise<StoredLimit[]> {
      const rows = await database.spendingLimit.findMany({
        where: { tenantId: { gt: after }, tenant: { desired: { not: 'deleted' } } },
        orderBy: { tenantId: 'asc' },
        take: limit,
        include: withConditions,
      })
      return rows.map(toStoredLimit)
    },

    /**
     * Sets a tenant's limit, with its first check.
     * @throws ControlError TENANT_NOT_FOUND
     */
    async put(limit: SpendingLimit, check: SpendingCheck, { transaction, audit }: RecordedWrite): Promise<StoredLimit> {
      const { tenantId, amountMicro, currency, action } = limit
      await lock(transaction, `tenant:${tenantId}`)
      if ((await transaction.tenant.count({ where: { id: tenantId } })) === 0) throw tenantNotFound()
      const columns = { amountMicro, currency, action, changedAt: now() }
      await transaction.spendingLimit.upsert({
        where: { tenantId },
        create: { tenantId, ...columns },
        update: columns,
      })
      await apply(transaction, tenantId, check)
      const detail = { amount: amountText(amountMicro, currency), currency, action }
      audit({ action: 'tenant.set_spending_limit', target: tenantId, detail })
      return toStoredLimit(
        await transaction.spendingLimit.findUniqueOrThrow({ where: { tenantId }, include: withConditions }),
      )
    },

    /**
     * Removes a tenant's limit.
     * @throws ControlError SPENDING_LIMIT_NOT_FOUND
     */
    async remove(tenantId: string, { transaction, audit }: RecordedWrite): Promise<void> {
      await lock(transaction, `tenant:${tenantId}`)
      const { count } = await transaction.spendingLimit.deleteMany({ where: { tenantId } })
      if (count === 0) throw limitNotFound()
      await reportCondition(transaction, tenantId, undefined)
      await recordChange(transaction, 'published', tenantId)
      audit({ action: 'tenant.delete_spending_limit', target: tenantId, detail: {} })
    },

    /**
     * Stores the totals of checks that change nothing else.
     * @throws LeadershipLost once another control plane leads
     */
    async recordTotals(checks: readonly LimitCheck[], epoch: bigint): Promise<void> {
      const rows = checks.map(({ limit, check }) => ({
        tenant_id: limit.tenantId,
        changed_at: limit.changedAt,
        month: check.month,
        total_micro: String(check.totalMicro),
        checked_at: check.checkedAt,
      }))
      const leads = await database.$queryRaw<{ leads: number }[]>`
        with leader as (${leaderRow(epoch)}),
        updated as (
          update spending_limits l set month = (r.month at time zone 'UTC')::date, total_micro = r.total_micro, checked_at = r.checked_at
          from jsonb_to_recordset(${JSON.stringify(rows)}::jsonb)
            as r(tenant_id text, changed_at timestamptz(3), month timestamptz, total_micro bigint, checked_at timestamptz(3))
          where l.tenant_id = r.tenant_id and l.changed_at = r.changed_at and exists (select from leader))
        select count(*)::int as leads from leader`
      ledRow(leads)
    },

    /**
     * Stores a check with its condition, and reports it to operators and gateways. A limit that was changed since it was
     * read stays as it is.
     * @throws LeadershipLost once another control plane leads
     */
    apply: ({ limit: { tenantId, changedAt }, check }: LimitCheck, epoch: bigint): Promise<void> =>
      ledWrite(database, epoch, [`tenant:${tenantId}`], async (transaction) => {
        if ((await transaction.spendingLimit.count({ where: { tenantId, changedAt } })) === 0) return
        await apply(transaction, tenantId, check)
      }),
  }
}

/** Returns the error for a tenant without a spending limit. */
export function limitNotFound(): ControlError {
  return new ControlError('SPENDING_LIMIT_NOT_FOUND', 'The tenant has no spending limit.')
}

const withConditions = { tenant: { select: { conditions: true } } } as const

function toStoredLimit(row: LimitRow & { tenant: { conditions: unknown } }): StoredLimit {
  const { tenantId, amountMicro, currency, action, changedAt, month, totalMicro, checkedAt, rejectsUntil } = row
  return {
    tenantId,
    amountMicro,
    currency,
    // A check constraint limits it to the actions.
    action: action as SpendingLimit['action'],
    changedAt,
    last:
      month === null || totalMicro === null || checkedAt === null
        ? undefined
        : { month, totalMicro, checkedAt, rejectsUntil: rejectsUntil ?? undefined },
    condition: toConditions(row.tenant.conditions).find(({ type }) => type === 'Spending'),
  }
}

/** Replaces the condition of a tenant's spending. Its other conditions stay. */
async function reportCondition(transaction: Transaction, tenantId: string, condition: Condition | undefined) {
  const added = JSON.stringify(condition === undefined ? [] : [condition])
  await transaction.$executeRaw`
    update tenants set conditions = coalesce(
      (select jsonb_agg(one order by position)
        from jsonb_array_elements(conditions) with ordinality as given (one, position) where one ->> 'type' <> 'Spending'),
      '[]') || ${added}::jsonb
    where id = ${tenantId}`
}
