// Metering's cost: the gateway's throughput with and without it, and the ledger of many tenants: reading usage, closing a
// month, its size.
import type { Figures, Report } from '#bench/figures.ts'
import { gatewayCost } from '#bench/support/gateway-cost.ts'
import { ledgerFigures } from '#bench/support/ledger-figures.ts'

export async function figures(report: Report): Promise<Figures> {
  return { ...(await gatewayCost(report)), ...(await ledgerFigures(report)) }
}
