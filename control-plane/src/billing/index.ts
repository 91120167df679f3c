// The exports of `billing/` that other modules may import.
export { type BillingConfig, readBillingConfig } from './billing-config.ts'
export { type BillingParts, checkBilling, openBilling } from './billing-stores.ts'
export { closeMonths, type ClosingDeps, createClosing } from './jobs.ts'
export { loadPdfFonts, type PdfFonts } from './pdf-fonts.ts'
export { addAdjustmentRoutes, type AdjustmentRoutesDeps } from './routes-adjustments.ts'
export { addInvoiceRoutes, type InvoiceRoutesDeps } from './routes-invoices.ts'
