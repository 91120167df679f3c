// The states of an invoice.

export const invoiceStates = ['draft', 'final', 'void'] as const

/** A draft follows what is known; a final invoice never changes; a void one stays, with its number, and another may be made. */
export type InvoiceState = (typeof invoiceStates)[number]
