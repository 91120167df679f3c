// The operator's file of prices: who sells, in which currency, how invoices are numbered, and which price list holds when.
import { Type } from 'typebox'
import { parseMonth } from './months.ts'
import { checkForm, Party, PriceListText, readPriceList, type PriceList } from './price-list.ts'

const closed = { additionalProperties: false }

const BillingFile = Type.Object(
  {
    currency: Type.String(),
    seller: Party,
    /** Below the totals: how to pay, what the law wants said. */
    notes: Type.Optional(Party.properties.lines),
    /** Before the number of each invoice. */
    number_prefix: Type.Optional(Type.String({ pattern: '^[A-Za-z0-9/-]{0,16}$' })),
    /** Days after the month's end for which an invoice stays a draft. */
    draft_days: Type.Optional(Type.Integer({ minimum: 0, maximum: 60 })),
    /** Each holds from its month on, until the next one's. */
    price_lists: Type.Array(
      Type.Object({ from: Type.String(), tax: PriceListText.properties.tax, plans: PriceListText.properties.plans }, closed),
      { minItems: 1 },
    ),
  },
  closed,
)

export interface BillingConfig {
  currency: string
  seller: Party
  notes: string[]
  numberPrefix: string
  draftDays: number
  /** In rising order of `from`. */
  lists: readonly { from: Date; text: PriceListText; prices: PriceList }[]
}

/** Reads the operator's file of prices. @throws Error that names the place and what is wrong there */
export function readBillingConfig(json: string): BillingConfig {
  const file = checkForm(BillingFile, parseJson(json), 'prices')
  const lists = file.price_lists.map(({ from, tax, plans }, index) => {
    const where = `prices: price_lists[${index}]`
    const month = parseMonth(from)
    if (month === undefined) throw new Error(`${where}.from must be a month, YYYY-MM`)
    const text = { currency: file.currency, tax, plans }
    return { from: month, text, prices: readPriceList(text, where) }
  })
  for (const [index, { from }] of lists.entries()) {
    const before = lists[index - 1]
    if (before !== undefined && before.from >= from) throw new Error(`prices: price_lists[${index}].from must be later than the one before`)
  }
  return { currency: file.currency, seller: file.seller, notes: file.notes ?? [], numberPrefix: file.number_prefix ?? '', draftDays: file.draft_days ?? 0, lists }
}

/** @throws Error when a list has no prices for a plan, or prices for one that there is not */
export function checkPlans(config: BillingConfig, plans: readonly string[]): void {
  for (const { text, prices } of config.lists) {
    const missing = plans.filter((plan) => !prices.plans.has(plan))
    if (missing.length > 0) throw new Error(`prices: a price list has no prices for the plan ${missing.join(', ')}`)
    const unknown = Object.keys(text.plans).filter((plan) => !plans.includes(plan))
    if (unknown.length > 0) throw new Error(`prices: there is no plan ${unknown.join(', ')}; there are ${plans.join(', ')}`)
  }
}

/** The list that holds in a month; undefined before the first. */
export function listFor(config: BillingConfig, month: Date): BillingConfig['lists'][number] | undefined {
  return config.lists.findLast(({ from }) => from <= month)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Error('prices: the file is not JSON', { cause })
  }
}
