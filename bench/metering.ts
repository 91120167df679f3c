// What metering costs: the gateway's throughput with it and without; and what the ledger of many tenants does: reading usage,
// closing a month, its size.
import type { Figures, Report } from '#bench/figures.ts'
import { gatewayCost } from '#bench/support/gateway-cost.ts'
import { ledgerFigures } from '#bench/support/ledger-figures.ts'

export async function figures(report: Report): Promise<Figures> {
  return { ...(await gatewayCost(report)), ...(await ledgerFigures(report)) }
}
