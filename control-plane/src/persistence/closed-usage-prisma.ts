// What billing reads of the ledger, on the control database; checked against its chains as it is read.
import { parseAmounts } from '../usage/amounts-text.ts'
import type { ClosedMonth, ClosedUsage, Correction } from '../usage/closed-usage.ts'
import { chainOf, chainStart, correctionLink } from '../usage/hash-chain.ts'
import { unpackHours } from '../usage/packed-hours.ts'
import type { Database } from './database.ts'

export function createClosedUsage(database: Database): ClosedUsage {
  return {
    async month(tenantId, month) {
      // One snapshot: a correction is never seen without the closing that made it one.
      const [row, corrections, head] = await database.$transaction(
        [
          database.usageMonth.findUnique({ where: { month_tenantId: { month, tenantId } } }),
          database.usageCorrection.findMany({ where: { tenantId, billedMonth: month }, orderBy: { number: 'asc' } }),
          database.usageTenant.findUnique({ where: { tenantId }, select: { hash: true } }),
        ],
        { isolationLevel: 'RepeatableRead' },
      )
      const end = row?.hash ?? head?.hash ?? chainStart
      return checked({
        tenantId,
        month,
        hours: row === null ? [] : unpackHours(row.hours, tenantId, month),
        corrections: corrections.map((correction): Correction => ({ ...correction, amounts: parseAmounts(correction.amounts) })),
        previous: row?.previous ?? end,
        hash: end,
        closedAt: row?.closedAt ?? undefined,
      })
    },

    async closedTenants(month, { after = '', limit }) {
      const rows = await database.usageMonth.findMany({
        where: { month, tenantId: { gt: after }, closedAt: { not: null } }, select: { tenantId: true }, orderBy: { tenantId: 'asc' }, take: limit,
      })
      return rows.map(({ tenantId }) => tenantId)
    },
  }
}

/** @throws Error */
function checked(month: ClosedMonth): ClosedMonth {
  const name = `${month.month.toISOString().slice(0, 7)} of ${month.tenantId}`
  if (chainOf(month.previous, month.hours) !== month.hash) throw new Error(`the closed hours of ${name} do not fit their chain`)
  for (const correction of month.corrections) {
    if (correctionLink(correction.previous, correction) !== correction.hash) throw new Error(`correction ${correction.number} of ${name} does not fit its chain`)
  }
  return month
}
