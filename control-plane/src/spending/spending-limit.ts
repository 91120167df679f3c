// What a tenant may spend in a month: the limit, and what follows from the total of its upcoming invoice. Pure.
import { currencyDecimalPlaces, parseDecimal, payableText, smallestAmount } from '../billing/index.ts'
import { ControlError } from '../platform/errors.ts'
import { monthText, nextMonth } from '../platform/months.ts'
import type { Condition } from '../tenants/index.ts'
import type { OperatorEvent } from '../webhooks/index.ts'

/** The action at 100 % of a limit: gateways reject the tenant's requests, or operators are notified only. */
export const spendingActions = ['reject', 'notify'] as const
export type SpendingAction = (typeof spendingActions)[number]

/** A tenant's limit in micro-units of the currency, tax included. */
export interface SpendingLimit {
  tenantId: string
  amountMicro: bigint
  /** The code of ISO 4217. */
  currency: string
  action: SpendingAction
}

/** The comparison of a limit with the total of the upcoming invoice. */
export interface SpendingCheck {
  /** The month's first instant, UTC. */
  month: Date
  totalMicro: bigint
  checkedAt: Date
  /** The end of the month if gateways reject the tenant's requests. */
  rejectsUntil: Date | undefined
  /** The condition to report; undefined below 80 %. */
  condition: Condition | undefined
  /** Events for operators, each with the key by which it is sent once. */
  events: readonly { event: OperatorEvent; once: string }[]
}

const percents = [
  { percent: 80, type: 'spending.warning' },
  { percent: 100, type: 'spending.reached' },
] as const

/**
 * Compares a limit with the total of the upcoming invoice.
 * @param month the first instant of the total's month, UTC
 */
export function checkSpending(limit: SpendingLimit, totalMicro: bigint, month: Date, at: Date): SpendingCheck {
  const { tenantId, amountMicro, currency, action } = limit
  const [total, amount] = [amountText(totalMicro, currency), amountText(amountMicro, currency)]
  const end = nextMonth(month)
  const isReached = totalMicro >= amountMicro
  const reached = percents.filter(({ percent }) => totalMicro * 100n >= amountMicro * BigInt(percent))
  const message =
    `The upcoming invoice of ${monthText(month)} is ${total} ${currency}, ` +
    `${percentOf(totalMicro, amountMicro)} % of the spending limit of ${amount} ${currency}.`
  return {
    month,
    totalMicro,
    checkedAt: at,
    rejectsUntil: isReached && action === 'reject' ? end : undefined,
    condition:
      reached.length === 0
        ? undefined
        : {
            type: 'Spending',
            status: isReached ? 'False' : 'True',
            reason: isReached ? 'SpendingLimitReached' : 'SpendingNearLimit',
            message,
            observed_at: at.toISOString(),
          },
    events: reached.map(({ percent, type }) => ({
      event: {
        type,
        tenantId,
        data: {
          tenant_id: tenantId,
          month: monthText(month),
          percent,
          upcoming: total,
          limit: amount,
          currency,
          action,
          resets_at: end.toISOString(),
        },
      },
      once: `spending:${tenantId}:${percent}:${monthText(month)}:${amountMicro}`,
    })),
  }
}

/** Returns the whole percentage of a limit that a total is, rounded down; 0 for a credit. */
export function percentOf(totalMicro: bigint, amountMicro: bigint): number {
  return totalMicro <= 0n ? 0 : Number((totalMicro * 100n) / amountMicro)
}

/** Writes an amount with the currency's decimal places, as invoices do. */
export function amountText(millionths: bigint, currency: string): string {
  return payableText(millionths, currencyDecimalPlaces(currency))
}

/**
 * Reads the amount of a limit, such as `50.00`.
 * @returns micro-units
 * @throws ControlError INVALID_FIELD unless it is more than 0 and has at most the currency's decimal places
 */
export function readAmount(text: string, currency: string): bigint {
  const decimalPlaces = currencyDecimalPlaces(currency)
  const amount = text.length > 18 ? undefined : parseDecimal(text)
  if (amount === undefined || amount === 0n || amount > maxAmountMicro || amount % smallestAmount(decimalPlaces) !== 0n)
    throw new ControlError(
      'INVALID_FIELD',
      `Invalid amount "${text.slice(0, 100)}". It must be a decimal number of ${currency}, more than 0 and ` +
        `at most 999999999, with at most ${decimalPlaces} decimal places.`,
    )
  return amount
}

const maxAmountMicro = 999_999_999_000_000n
