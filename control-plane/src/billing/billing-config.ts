// The operator's price file: the seller, the currency, the numbering of invoices, and the price lists by month.
import { ConfigurationError } from '@tenantry/contract'
import { Type } from 'typebox'
import { parseMonth } from '../platform/months.ts'
import { checkForm, shown } from '../platform/check-form.ts'
import { checkCurrency, Party, PriceListText, readPriceList, type PriceList } from './price-list.ts'

const closed = { additionalProperties: false }

const BillingFile = Type.Object(
  {
    currency: Type.String(),
    seller: Party,
    /** Text below the totals: how to pay, and what the law requires. */
    notes: Type.Optional(Party.properties.lines),
    /** The prefix of each invoice's number. */
    number_prefix: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9/-]{0,16}$' })),
    /** Days after the month's end for which an invoice stays a draft. */
    draft_days: Type.Optional(Type.Integer({ minimum: 0, maximum: 60 })),
    /** Price lists in rising order. Each applies from its month until the next one's. */
    price_lists: Type.Array(
      Type.Object(
        { from: Type.String(), tax: PriceListText.properties.tax, plans: PriceListText.properties.plans },
        closed,
      ),
      { minItems: 1 },
    ),
  },
  closed,
)

/**
 * The operator's price file: the seller, the currency, and the price lists. A draft becomes final `draftDays` after the
 * month's end.
 */
export interface BillingConfig {
  currency: string
  seller: Party
  notes: string[]
  numberPrefix: string
  draftDays: number
  /** Price lists in rising order of `from`. */
  lists: readonly { from: Date; text: PriceListText; prices: PriceList }[]
}

/**
 * Reads the operator's price file.
 * @param source the name of the file in errors
 * @throws Error that names the field, its value and what is allowed
 */
export function readBillingConfig(json: string, source = 'prices'): BillingConfig {
  const file = checkForm(BillingFile, parseJson(json, source), `${source}: `)
  checkCurrency(file.currency, `${source}: `)
  const lists = file.price_lists.map(({ from, tax, plans }, index) => {
    const where = `${source}: price_lists[${index}].`
    const month = parseMonth(from)
    if (month === undefined) throw new Error(`${where}from is ${shown(from)}, but must be a month, YYYY-MM`)
    const text = { currency: file.currency, tax, plans }
    return { from: month, text, prices: readPriceList(text, where) }
  })
  for (const [index, { from }] of lists.entries()) {
    const before = lists[index - 1]
    if (before !== undefined && before.from >= from) {
      throw new Error(
        `${source}: price_lists[${index}].from is ${shown(file.price_lists[index]?.from)}, ` +
          'but must be later than the one before',
      )
    }
  }
  return {
    currency: file.currency,
    seller: file.seller,
    notes: file.notes ?? [],
    numberPrefix: file.number_prefix ?? '',
    draftDays: file.draft_days ?? 0,
    lists,
  }
}

/**
 * Checks that each price list has prices for every plan and for no other.
 * @throws ConfigurationError when one does not
 */
export function checkPlans(config: BillingConfig, plans: readonly string[], source = 'prices'): void {
  for (const [index, { text, prices }] of config.lists.entries()) {
    const where = `${source}: price_lists[${index}].plans`
    const missing = plans.find((plan) => !prices.plans.has(plan))
    if (missing !== undefined)
      throw new ConfigurationError(`${where}.${missing} is missing. Each price list needs prices for every plan`)
    const unknown = Object.keys(text.plans).find((plan) => !plans.includes(plan))
    if (unknown !== undefined)
      throw new ConfigurationError(`${where}.${unknown} is not a known plan. Allowed: ${plans.join(', ')}`)
  }
}

/** Returns the price list that applies in a month; undefined before the first one. */
export function priceListFor(config: BillingConfig, month: Date): BillingConfig['lists'][number] | undefined {
  return config.lists.findLast(({ from }) => from <= month)
}

function parseJson(text: string, source: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Error(
      `${source}: the file is not valid JSON: ${cause instanceof Error ? cause.message.replaceAll(/\s+/g, ' ') : ''}`,
      { cause },
    )
  }
}
