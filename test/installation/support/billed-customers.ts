// Customers for tests of month ends: the requests that each has sent, the usage that counts, and the prices.

interface Tally {
  served: number
  refused: number
  bytes: number
}

export interface Customer {
  id: string
  name: string
  key: string
  /** Requests sent in each month, `YYYY-MM`. */
  sent: Map<string, Tally>
}

const today = new Date()
const months = [1, 2, 3].map((later) => new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + later, 1)))
export const [first, next, last] = months as [Date, Date, Date]
export const textOf = (month: Date) => month.toISOString().slice(0, 7)

export const prices = {
  currency: 'EUR',
  seller: { name: 'Nordlicht Hosting GmbH', lines: ['Speicherstraße 12', '20457 Hamburg'] },
  number_prefix: 'NL-',
  price_lists: [
    {
      from: textOf(first),
      tax: { name: 'VAT', percent: '19' },
      plans: {
        Free: { fee: '0', resources: { requests: { unit: 'request', included: '5', tiers: [{ price: '0.01' }] } } },
        Pro: {
          fee: '25',
          resources: {
            requests: { unit: 'request', included: '10', tiers: [{ up_to: '30', price: '0.5' }, { price: '0.25' }] },
            files: { unit: 'GB-hour', tiers: [{ price: '0.9' }] },
          },
        },
        Enterprise: { fee: '999.99' },
      },
    },
  ],
}

export function tallyOf({ sent }: Customer, month: string): Tally {
  const tally = sent.get(month) ?? { served: 0, refused: 0, bytes: 0 }
  sent.set(month, tally)
  return tally
}

export interface UsageResponse {
  month: string
  incomplete: boolean
  missing_sources: string[]
  resources: {
    api_requests: { count: number; refused: number }
    egress: { bytes: number }
    storage: { files_byte_hours: number }
  }
}
