// One price list: the operator's text, its validation, and the values that rating needs.
import { Type, type Static } from 'typebox'
import { checkForm, shown } from '../platform/check-form.ts'
import { isolationModels } from '../stacks/index.ts'
import { parseDecimal } from './money.ts'
import { isResource, resourceKind, resources, type Resource } from './resources.ts'

const closed = { additionalProperties: false }
const DecimalText = Type.String({ description: 'Decimal number of at most six decimal places' })
const Line = Type.String({ minLength: 1, maxLength: 200, pattern: '^[^\\u0000-\\u001f\\u007f\\ud800-\\udfff]+$' })

/** A seller or buyer as invoices name it. */
export const Party = Type.Object({ name: Line, lines: Type.Array(Line, { maxItems: 10 }) }, closed)
export type Party = Static<typeof Party>

const ResourcePriceText = Type.Object(
  {
    unit: Type.String(),
    /** Units that cost nothing in a whole month. */
    included: Type.Optional(DecimalText),
    /** The price of the units above the tier before, up to this many units of the month. The last tier has no bound. */
    tiers: Type.Array(Type.Object({ up_to: Type.Optional(DecimalText), price: DecimalText }, closed), {
      minItems: 1,
      maxItems: 20,
    }),
  },
  closed,
)

const feeFields = {
  fee: DecimalText,
  /** The least that the plan costs in a whole month, fee included. */
  minimum: Type.Optional(DecimalText),
}

const PlanPricesText = Type.Object(
  {
    ...feeFields,
    /**
     * The fee and minimum of tenants whose isolation model is weaker than the plan's, by model; 0 for models that are
     * not named.
     */
    weaker_isolation: Type.Optional(Type.Record(Type.String(), Type.Object(feeFields, closed))),
    resources: Type.Optional(Type.Record(Type.String(), ResourcePriceText)),
  },
  closed,
)

/** One price list as it is stored with its invoices. Rating a month needs no other settings. */
export const PriceListText = Type.Object(
  {
    currency: Type.String({ pattern: '^[A-Z]{3}$' }),
    tax: Type.Object({ name: Line, percent: DecimalText }, closed),
    plans: Type.Record(Type.String(), PlanPricesText),
  },
  closed,
)
export type PriceListText = Static<typeof PriceListText>

/** A price list as values. Amounts are millionths of the currency's unit, quantities millionths of the price's unit. */
export interface PriceList {
  currency: string
  tax: { name: string; /** The tax rate in millionths: 19 % is 190000. */ rate: bigint }
  plans: ReadonlyMap<string, PlanPrices>
}

/** The fee and minimum of a whole month. */
export interface Fee {
  fee: bigint
  minimum: bigint
}

export interface PlanPrices extends Fee {
  /** The fees and minimums that replace the plan's, by the isolation model that is weaker than the plan's. */
  weakerIsolation: ReadonlyMap<string, Fee>
  resources: ReadonlyMap<Resource, ResourcePrice>
}

export interface ResourcePrice {
  unit: string
  included: bigint
  /** The price tiers. `upTo` counts from the month's first unit, included ones too; undefined only in the last tier. */
  tiers: readonly { upTo: bigint | undefined; price: bigint }[]
}

/**
 * Reads one price list.
 * @param where the text before a field's path in an error, e.g. `prices.json: price_lists[0].`
 * @throws Error that names the field, its value and what is allowed
 */
export function readPriceList(given: unknown, where = 'price list: '): PriceList {
  const text = checkForm(PriceListText, given, where)
  checkCurrency(text.currency, where)
  const percent = decimal(text.tax.percent, `${where}tax.percent`)
  if (percent % 100n !== 0n)
    throw new Error(`${where}tax.percent is ${shown(text.tax.percent)}, but may have at most four decimal places`)
  return {
    currency: text.currency,
    tax: { name: text.tax.name, rate: percent / 100n },
    plans: new Map(
      Object.entries(text.plans).map(([plan, prices]) => [plan, readPlan(prices, `${where}plans.${plan}`)]),
    ),
  }
}

/**
 * Checks the code of a currency.
 * @throws Error for any other text
 */
export function checkCurrency(currency: string, where: string): void {
  if (!Intl.supportedValuesOf('currency').includes(currency))
    throw new Error(`${where}currency is ${shown(currency)}, but must be a code of ISO 4217, such as EUR`)
}

function readPlan(text: Static<typeof PlanPricesText>, where: string): PlanPrices {
  const prices = Object.entries(text.resources ?? {}).map(([name, price]): [Resource, ResourcePrice] => {
    if (!isResource(name))
      throw new Error(`${where}.resources.${name} is not a known resource. Allowed: ${resources.join(', ')}`)
    return [name, readResource(name, price, `${where}.resources.${name}`)]
  })
  const weaker = Object.entries(text.weaker_isolation ?? {}).map(([model, fee]): [string, Fee] => {
    const models: readonly string[] = isolationModels.slice(0, -1)
    if (!models.includes(model))
      throw new Error(`${where}.weaker_isolation: "${model}" is not a weaker model. Allowed: ${models.join(', ')}`)
    return [model, readFee(fee, `${where}.weaker_isolation.${model}`)]
  })
  return { ...readFee(text, where), weakerIsolation: new Map(weaker), resources: new Map(prices) }
}

function readFee({ fee, minimum = '0' }: { fee: string; minimum?: string }, where: string): Fee {
  return { fee: decimal(fee, `${where}.fee`), minimum: decimal(minimum, `${where}.minimum`) }
}

function readResource(resource: Resource, text: Static<typeof ResourcePriceText>, where: string): ResourcePrice {
  const { units } = resourceKind(resource)
  if (!Object.hasOwn(units, text.unit))
    throw new Error(`${where}.unit is ${shown(text.unit)}, but must be one of ${Object.keys(units).join(', ')}`)
  const included = decimal(text.included ?? '0', `${where}.included`)
  let below = included
  const tiers = text.tiers.map((tier, index) => {
    const location = `${where}.tiers[${index}]`
    const last = index === text.tiers.length - 1
    if (last !== (tier.up_to === undefined))
      throw new Error(`${location}: every tier except the last must have "up_to"`)
    const upTo = tier.up_to === undefined ? undefined : decimal(tier.up_to, `${location}.up_to`)
    if (upTo !== undefined && upTo <= below)
      throw new Error(
        `${location}.up_to is ${shown(tier.up_to)}, but must be more than "included" and than the tier before`,
      )
    below = upTo ?? below
    return { upTo, price: decimal(tier.price, `${location}.price`) }
  })
  return { unit: text.unit, included, tiers }
}

function decimal(text: string, where: string): bigint {
  const value = parseDecimal(text)
  if (value === undefined)
    throw new Error(
      `${where} is ${shown(text)}, but must be a decimal number of at most six decimal places, not negative`,
    )
  return value
}
