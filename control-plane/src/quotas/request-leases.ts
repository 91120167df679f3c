// Leases of tenants' monthly requests, and slots for their long-lived connections, which gateways request.
import type { LeaseResponse, LeaseCall } from '@tenantry/contract'

export interface RequestLeases {
  /**
   * Records what the gateway has used and releases, ends the leases of its earlier boots, and grants new ones. Repeated
   * and late calls have no effect.
   */
  call(call: LeaseCall): Promise<LeaseResponse>
}
