// Counts gateways' calls for leases, and the grants, for the metrics.
import type { LeaseGrant } from '@tenantry/contract'
import type { RequestLeases } from './request-leases.ts'

/** Counts gateways' calls for leases, for the metrics. */
export interface LeaseMeasure {
  /**
   * Counts a call. `refused`: a late call, or one of a gateway whose leases have ended. `failed`: it got no response.
   */
  called(outcome: 'accepted' | 'refused' | 'failed'): void
  /** Counts a grant, once for each tenant for which requests or connection slots were requested. */
  requested(kind: 'requests' | 'connections', state: LeaseGrant['state']): void
}

/** Wraps leases so that each call is counted by `measure`. Results and errors are passed on unchanged. */
export function measuredLeases(leases: RequestLeases, measure: LeaseMeasure): RequestLeases {
  return {
    async call(call) {
      try {
        const response = await leases.call(call)
        measure.called(response.accepted ? 'accepted' : 'refused')
        for (const { state } of response.grants) measure.requested('requests', state)
        const waits = new Set(call.slots?.filter(({ ask: requested }) => requested > 0).map(({ tenant_id: id }) => id))
        for (const { tenant_id: id, state } of response.slots)
          if (waits.has(id)) measure.requested('connections', state)
        return response
      } catch (error) {
        measure.called('failed')
        throw error
      }
    },
  }
}
