// The differences between what exists of a tenant and what should exist.
import type { Difference } from '../engines/index.ts'
import type { DriftPolicy, Tenant } from '../tenants/index.ts'

export interface Drift {
  tenant_id: string
  policy: DriftPolicy
  /** ISO 8601, UTC. */
  observed_at: string
  drifted: boolean
  differences: Difference[]
}

export interface DriftReader {
  /**
   * Reads a tenant's drift.
   * @throws EngineError when the engine can't be reached: unknown differences are never reported as none
   */
  read(tenant: Tenant): Promise<Drift>
}
