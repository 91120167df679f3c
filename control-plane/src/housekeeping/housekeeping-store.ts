// What the warm pool and the pausing of idle tenants read and write of the control database. Every write is the leader's
// (`LeadershipLost` when it is not any more) and raises the generation, so that the reconciler carries it out.
import type { Isolation, SecretKind } from '../tenants/tenant.ts'

export interface WarmTenant {
  id: string
  /** `leaving`: it is being removed, and something of it may still be on the engine. */
  state: 'pending' | 'warm' | 'failed' | 'leaving'
  /** Digests; undefined before its services are first made. */
  images: { postgres: string; runtime: string } | undefined
}

export interface NewWarmTenant {
  id: string
  name: string
  plan: string
  region: string
  isolation: Isolation
  secrets: Record<SecretKind, string>
}

/** A tenant of its own stack that runs, and of which nothing is under way. */
export interface RunningTenant {
  id: string
  generation: number
  /** Undefined: the region's; 0: never. */
  pauseAfterSeconds: number | undefined
  /** When something was last done to it, its last wake for example. */
  updatedAt: Date
}

export interface HousekeepingStore {
  /** Oldest first. */
  warmTenants(regionId: string): Promise<WarmTenant[]>
  addWarm(tenant: NewWarmTenant, epoch: bigint): Promise<void>
  /** Its data is destroyed at once. @returns false when somebody has claimed it by now */
  removeWarm(tenantId: string, epoch: bigint): Promise<boolean>
  runningTenants(regionId: string): Promise<RunningTenant[]>
  /** @returns false when something was asked of the tenant since that generation, or is under way */
  pause(tenantId: string, generation: number, epoch: bigint): Promise<boolean>
}
