// What the routes are given.
import type { AuditLog } from '../audit/audit-log.ts'
import type { RegionConfig } from '../regions/region-config.ts'
import type { HealthReader } from '../health/health-reader.ts'
import type { PlatformKeyStore } from '../keys/platform-key-store.ts'
import type { PlanStore } from '../plans/plan.ts'
import type { TenantStore } from '../tenants/tenant-store.ts'
import type { UsageReader } from '../usage/usage-reader.ts'

export interface ApiDeps {
  regions: readonly RegionConfig[]
  tenants: TenantStore
  plans: PlanStore
  keys: PlatformKeyStore
  audit: AuditLog
  usage: UsageReader
  health: HealthReader
  changes: { next(tenantId: string, signal: AbortSignal): Promise<void> }
  /** Is the control database there? */
  ping(): Promise<boolean>
  now: () => Date
  deleteGraceSeconds: number
}
