// Counts gateways' calls for leases, and what they are granted, for the metrics.
import type { LeaseGrant } from '@tenantry/contract'
import type { RequestLeases } from './request-leases.ts'

export interface LeaseMeasure {
  /** `refused`: a late call, or one of a gateway whose leases were ended. `failed`: it got no answer. */
  called(outcome: 'accepted' | 'refused' | 'failed'): void
  /** Once for each tenant that was asked for. */
  asked(state: LeaseGrant['state']): void
}

export function measuredLeases(leases: RequestLeases, measure: LeaseMeasure): RequestLeases {
  return {
    async call(call) {
      try {
        const answer = await leases.call(call)
        measure.called(answer.accepted ? 'accepted' : 'refused')
        for (const { state } of answer.grants) measure.asked(state)
        return answer
      } catch (error) {
        measure.called('failed')
        throw error
      }
    },
  }
}
