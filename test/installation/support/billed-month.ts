// A month that can be closed, and the prices with which tests of recoveries make its invoices.

const today = new Date()

/** The month before last, which is over and can be closed. */
export const month = new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth() - 2, 1)).toISOString().slice(0, 7)

/** The content of the file of prices. */
export const prices = {
  currency: 'EUR',
  seller: { name: 'Nordlicht Hosting GmbH', lines: ['20457 Hamburg'] },
  price_lists: [
    {
      from: month,
      tax: { name: 'VAT', percent: '19' },
      plans: { Free: { fee: '1' }, Pro: { fee: '25' }, Enterprise: { fee: '99' } },
    },
  ],
}
