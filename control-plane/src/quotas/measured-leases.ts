// Counts gateways' calls for leases, and what they are granted, for the metrics.
import type { LeaseGrant } from '@tenantry/contract'
import type { RequestLeases } from './request-leases.ts'

/** What is counted of gateways' calls for leases, for the metrics. */
export interface LeaseMeasure {
  /** `refused`: a late call, or one of a gateway whose leases were ended. `failed`: it got no answer. */
  called(outcome: 'accepted' | 'refused' | 'failed'): void
  /** Once for each tenant of which requests, or slots for connections, were asked for. */
  requested(kind: 'requests' | 'connections', state: LeaseGrant['state']): void
}

/** Wraps leases so that each call is reported to `measure`; its result or error is passed on as it is. */
export function measuredLeases(leases: RequestLeases, measure: LeaseMeasure): RequestLeases {
  return {
    async call(call) {
      try {
        const response = await leases.call(call)
        measure.called(response.accepted ? 'accepted' : 'refused')
        for (const { state } of response.grants) measure.requested('requests', state)
        const waits = new Set(call.slots?.filter(({ ask: request }) => request > 0).map(({ tenant_id: id }) => id))
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
