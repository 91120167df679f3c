// Plans and regions, as the API returns them (specification, sections 2.6 and 8).
import type { RateLimit } from '@tenantry/contract'
import type { Isolation } from '../stacks/index.ts'

/** A plan with its quotas. Null is unlimited. Sizes are bytes, decimal: 500 MB is 500,000,000. */
export interface Plan {
  id: string
  isolation: Isolation
  documentBytes: number | null
  fileBytes: number | null
  requestsPerMonth: number | null
  realtimeConnections: number | null
  /** The rate limit at each gateway. */
  rate: RateLimit | null
}
