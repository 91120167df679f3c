// A prices file with every kind of price, and usage amounts for tests of rating.
import { noAmounts, type Amounts } from '#control-plane/usage/hour-bucket.ts'
import { readBillingConfig } from '#control-plane/billing/billing-config.ts'

const planPrices = {
  Free: { fee: '0', resources: { requests: { unit: 'thousand requests', included: '10', tiers: [{ price: '0.5' }] } } },
  Pro: {
    fee: '25',
    minimum: '30',
    weaker_isolation: { 'schema-per-tenant': { fee: '9', minimum: '10.5' } },
    resources: {
      requests: {
        unit: 'million requests',
        included: '1',
        tiers: [{ up_to: '5', price: '2' }, { up_to: '20.5', price: '1.25' }, { price: '0.333333' }],
      },
      egress: { unit: 'GB', included: '10', tiers: [{ up_to: '100', price: '0.09' }, { price: '0.07' }] },
      documents: { unit: 'GB-month', included: '1', tiers: [{ price: '0.125' }] },
      files: { unit: 'GB-month', included: '5.5', tiers: [{ up_to: '50', price: '0.021' }, { price: '0.018' }] },
      connections: { unit: 'connection-hour', included: '100', tiers: [{ price: '0.001' }] },
      realtime_messages: { unit: 'million messages', included: '0.1', tiers: [{ price: '2.5' }] },
      function_invocations: { unit: 'million invocations', included: '0.5', tiers: [{ price: '2' }] },
      function_memory: { unit: 'GiB-second', tiers: [{ price: '0.000017' }] },
    },
  },
  Enterprise: {
    fee: '999.99',
    minimum: '0',
    resources: {
      egress: { unit: 'TB', included: '1', tiers: [{ price: '49.999999' }] },
      function_cpu: { unit: 'hour', tiers: [{ price: '0.1' }] },
    },
  },
}

export const pricesFile = {
  currency: 'EUR',
  seller: { name: 'Nordlicht Hosting GmbH', lines: ['Speicherstraße 12', '20457 Hamburg', 'VAT DE 999 999 999'] },
  number_prefix: 'NL-',
  price_lists: [
    { from: '2026-01', tax: { name: 'VAT', percent: '19' }, plans: planPrices },
    {
      from: '2026-09',
      tax: { name: 'VAT', percent: '20.5' },
      plans: { ...planPrices, Pro: { ...planPrices.Pro, fee: '27.5' } },
    },
  ],
}

export const billingConfig = readBillingConfig(JSON.stringify(pricesFile))

/** Returns the price list that is valid from January to August 2026. */
export function firstList() {
  const list = billingConfig.lists[0]
  if (list === undefined) throw new Error('the file has no price list')
  return list.prices
}

export function amounts(some: Partial<Amounts>): Amounts {
  return { ...noAmounts(), ...some }
}
