// Reads corrections from the JSON that Postgres returns.
import { parseAmounts } from './amounts-text.ts'
import type { Correction } from './closed-usage.ts'

/** A row of `usage_corrections`. */
export interface StoredCorrection {
  number: number
  hour: string
  amounts: string
  billed_month: string
  recorded_at: string
  previous: string
  hash: string
}

/**
 * Reads a correction's row.
 * @throws Error for amounts that `amountsText` did not write
 */
export function toCorrection(tenantId: string, row: StoredCorrection): Correction {
  const { number, hour, amounts, billed_month: billedMonth, recorded_at: recordedAt, previous, hash } = row
  return {
    tenantId,
    number,
    hour: new Date(hour),
    amounts: parseAmounts(amounts),
    billedMonth: new Date(billedMonth),
    recordedAt: new Date(recordedAt),
    previous,
    hash,
  }
}
