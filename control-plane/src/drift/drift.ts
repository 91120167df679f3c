// The differences between what exists of a tenant and what should exist.
import type { Difference } from '../engines/index.ts'
import type { DriftPolicy } from '../tenants/index.ts'

export interface Drift {
  tenant_id: string
  policy: DriftPolicy
  /** ISO 8601, UTC. */
  observed_at: string
  drifted: boolean
  differences: Difference[]
}
