// The states of an invoice.

export const invoiceStates = ['draft', 'final', 'void'] as const

/**
 * The state of an invoice. A draft is updated with its data; a final invoice never changes; a void one stays with its
 * number, and another may be made for its month.
 */
export type InvoiceState = (typeof invoiceStates)[number]
