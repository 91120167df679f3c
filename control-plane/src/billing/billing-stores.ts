// Puts the parts of billing together on the control database.
import { ConfigurationError } from '@tenantry/contract'
import { createBilling, type Billing } from './billing.ts'
import { checkPlans, type BillingConfig } from './billing-config.ts'
import { type PlanHistory, createPlanHistory } from '../plans/index.ts'
import { type ClosedUsage, createClosedUsage } from '../usage/index.ts'
import { createAdjustmentStore, type AdjustmentStore } from './store-adjustments.ts'
import type { Database } from '../platform/database.ts'
import { createInvoiceLedger, createInvoiceStore, type InvoiceStore, type InvoiceLedger } from './store-invoices.ts'
import { createTenantNames } from '../tenants/index.ts'

/** The billing service and its stores. */
export interface BillingParts {
  billing: Billing
  invoices: InvoiceStore
  adjustments: AdjustmentStore
  ledger: InvoiceLedger
  history: PlanHistory
  usage: ClosedUsage
}

/** Puts billing together on the control database. Without a `config` it makes no invoices. */
export function openBilling(database: Database, config: BillingConfig | undefined, now: () => Date): BillingParts {
  const options = { database, now, numberPrefix: config?.numberPrefix ?? '' }
  const [invoices, adjustments, history, usage] = [
    createInvoiceStore(options),
    createAdjustmentStore(options),
    createPlanHistory(database),
    createClosedUsage(database),
  ]
  const billing = createBilling({ config, usage, history, invoices, adjustments, namesOf: createTenantNames(database) })
  return { billing, invoices, adjustments, ledger: createInvoiceLedger(options), history, usage }
}

/** The name of the price file in errors. */
const pricesSetting = 'TENANTRY_PRICES_FILE'

/**
 * Checks the prices before the control plane starts with them.
 * @throws ConfigurationError when they do not fit the plans, or stored invoices are in another currency
 */
export async function checkBilling(
  { ledger }: Pick<BillingParts, 'ledger'>,
  config: BillingConfig,
  plans: readonly string[],
): Promise<void> {
  checkPlans(config, plans, pricesSetting)
  const other = await ledger.currenciesBut(config.currency)
  if (other.length > 0)
    throw new ConfigurationError(
      `${pricesSetting}: currency is ${config.currency}, but there are invoices or adjustments in ` +
        `${other.join(', ')}, which it can't correct or bill.`,
    )
}
