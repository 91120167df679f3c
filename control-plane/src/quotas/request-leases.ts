// Leases of tenants' monthly requests, as gateways ask for them.
import type { LeaseAnswer, LeaseCall } from '@tenantry/contract'

export interface RequestLeases {
  /**
   * Takes down what the gateway has used and gives back, ends the leases of its earlier incarnations, and grants.
   * Repeated and late calls do nothing.
   */
  call(call: LeaseCall): Promise<LeaseAnswer>
}
