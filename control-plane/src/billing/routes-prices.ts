// GET /v1/prices: the operator's price lists.
import { Type } from 'typebox'
import type { Api } from '../http/api.ts'
import { NoQuery } from '../http/parameters.ts'
import { ControlError } from '../platform/errors.ts'
import { monthText } from '../platform/months.ts'
import type { BillingConfig } from './billing-config.ts'
import { PriceListText } from './price-list.ts'

/** The dependencies of the route of prices. */
export interface PriceRoutesDeps {
  /** The operator's prices; undefined without a price file. */
  prices: BillingConfig | undefined
}

/** Adds the route that returns the price lists. */
export function addPriceRoutes(app: Api, deps: PriceRoutesDeps): void {
  app.get(
    '/v1/prices',
    {
      config: { scopes: ['admin', 'read', 'billing'] },
      schema: {
        summary: 'Price lists, each with the month from which it applies',
        tags: ['plans'],
        querystring: NoQuery,
        response: {
          200: Type.Object({
            currency: Type.String(),
            price_lists: Type.Array(
              Type.Object({
                from: Type.String({ description: 'YYYY-MM' }),
                tax: PriceListText.properties.tax,
                plans: PriceListText.properties.plans,
              }),
            ),
          }),
        },
      },
    },
    () => {
      if (deps.prices === undefined)
        throw new ControlError('BILLING_OFF', 'Billing is off: this installation has no prices (TENANTRY_PRICES_FILE).')
      const { currency, lists } = deps.prices
      return {
        currency,
        price_lists: lists.map(({ from, text: { tax, plans } }) => ({ from: monthText(from), tax, plans })),
      }
    },
  )
}
