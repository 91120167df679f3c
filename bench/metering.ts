// What metering costs: the gateway's throughput with it and without.
import type { Figures, Report } from './figures.ts'
import { gatewayCost } from './support/gateway-cost.ts'

export async function figures(report: Report): Promise<Figures> {
  return gatewayCost(report)
}
