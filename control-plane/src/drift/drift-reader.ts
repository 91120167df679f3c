// How what exists of a tenant differs from what should.
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
  /** @throws EngineError when the engine can't be asked: what is not seen is never said to be in order */
  read(tenant: Tenant): Promise<Drift>
}
