// What the routes are given.
import type { AuditLog } from '../audit/audit-log.ts'
import type { BackupStore } from '../backups/backup-store.ts'
import type { BackupTarget } from '../backups/backup-target.ts'
import type { UnknownBackups } from '../backups/unknown-backups.ts'
import type { AdjustmentStore } from '../billing/adjustment-store.ts'
import type { Billing } from '../billing/billing.ts'
import type { InvoiceStore } from '../billing/invoice-store.ts'
import type { PdfFonts } from '../billing/pdf-text.ts'
import type { Clock } from '../clock.ts'
import type { Engine } from '../engines/engine.ts'
import type { RegionCondition } from '../reconcile/region-conditions.ts'
import type { RegionConfig } from '../regions/region-config.ts'
import type { RolloutStore } from '../housekeeping/rollout-store.ts'
import type { DriftReader } from '../health/drift-reader.ts'
import type { HealthReader } from '../health/health-reader.ts'
import type { PlatformKeyStore } from '../keys/platform-key-store.ts'
import type { PlanHistory } from '../plans/plan-history.ts'
import type { PlanStore } from '../plans/plan.ts'
import type { StoredReader } from '../quotas/plan-fit.ts'
import type { WebhookStore } from '../operator-events/webhook-store.ts'
import type { TenantStore } from '../tenants/tenant-store.ts'
import type { UsageReader } from '../usage/usage-reader.ts'
import type { UsageSources } from '../usage/usage-sources.ts'

export interface ApiDeps {
  regions: readonly RegionConfig[]
  tenants: TenantStore
  plans: PlanStore
  keys: PlatformKeyStore
  audit: AuditLog
  rollouts: RolloutStore
  /** `kept` is undefined when the installation keeps no backups. */
  backups: { store: BackupStore; kept: { target: BackupTarget; unknown: UnknownBackups } | undefined }
  usage: UsageReader
  usageSources: UsageSources
  stored: StoredReader
  webhooks: WebhookStore
  /** The first address of the URL's host that webhooks may not be sent to. */
  forbiddenAddress(url: string): Promise<string | undefined>
  billing: Billing
  invoices: InvoiceStore
  adjustments: AdjustmentStore
  history: PlanHistory
  /** Read when the first PDF is made. */
  pdfFonts(): Promise<PdfFonts>
  health: HealthReader
  drift: DriftReader
  /** How a region was when the leader last looked; undefined where nobody has. */
  regionCondition(region: string): RegionCondition | undefined
  /** Of a region; undefined where somebody else started the parts. */
  engineOf(region: string): Engine | undefined
  changes: { next(tenantId: string, signal: AbortSignal): Promise<void> }
  /** Is the control database there? */
  ping(): Promise<boolean>
  now: () => Date
  clock: Pick<Clock, 'every' | 'sleep' | 'timeout'>
  deleteGraceSeconds: number
}
