// Leases of tenants' monthly requests, and slots for their connections that stay, as gateways ask for them.
import type { LeaseResponse, LeaseCall } from '@tenantry/contract'

export interface RequestLeases {
  /**
   * Takes down what the gateway has used and gives back, ends what its earlier incarnations held, and grants.
   * Repeated and late calls do nothing.
   */
  call(call: LeaseCall): Promise<LeaseResponse>
}
