// What metering costs: the gateway's throughput with it and without; and what the ledger of many tenants does: reading usage,
// closing a month, its size.
import type { Figures, Report } from './figures.ts'
import { gatewayCost } from './support/gateway-cost.ts'
import { ledgerFigures } from './support/ledger-figures.ts'

export async function figures(report: Report): Promise<Figures> {
  return { ...(await gatewayCost(report)), ...(await ledgerFigures(report)) }
}
